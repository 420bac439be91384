#include "sim/workload/trace_record.hpp"

namespace foretoken {

void TraceRecord::clear() {
  line = arrival_ns = after_delay_ns = 0;
  id.clear();
  after_id.clear();
  input_tokens = output_tokens = 0;
  max_new_tokens = -1;
  priority = turn = block_tokens = 0;
  session.clear();
  prefix_hashes.clear();
  tenant.clear();
  slo_class.clear();
  source.clear();
  model.clear();
  patience = cancel_after = kForever;
}

}  // namespace foretoken
