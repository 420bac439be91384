#include "tests/property/fault_rows.hpp"

namespace foretoken::laws {

FaultRow audit_row(const char* laws, const char* fault, const char* breach, const Setup& setup,
                   const Fault& seeded) {
  return {laws, fault, breach,
          [setup, seeded](bool faulty) { return faulty ? breach_of(setup, seeded) : breach_of(setup); }};
}

FaultRow drawn_row(const char* laws, const char* fault, const char* breach, int seeds,
                   const std::function<void(Draw&, bool faulty)>& check) {
  return {laws, fault, breach, [seeds, check](bool faulty) -> std::string {
            for (int seed = 1; seed <= seeds; ++seed) {
              Draw draw(static_cast<std::uint64_t>(seed), 0);
              try {
                check(draw, faulty);
              } catch (const Broken& broken) {
                return broken.what();
              }
            }
            return "";
          }};
}

Setup roomy() {
  Setup setup;
  setup.policy.sequences_max = 4;
  setup.policy.batch_tokens_max = 32;
  setup.policy.block_tokens = 4;
  setup.capacity = {64, 0, 64, false};
  for (int i = 0; i < 6; ++i) {
    Item item;
    item.offer.request.arrival = Time{Duration{i * 700}};
    item.offer.request.prompt_tokens = 10;
    item.offer.output_tokens = 5;
    setup.items.push_back(item);
  }
  return setup;
}

Setup scarce() {
  Setup setup = roomy();
  setup.capacity = {14, 0, 24, false};
  setup.items.resize(4);
  for (Item& item : setup.items) {
    item.offer.request.arrival = Time{};
    item.offer.request.prompt_tokens = 8;
    item.offer.output_tokens = 16;
  }
  return setup;
}

}  // namespace foretoken::laws
