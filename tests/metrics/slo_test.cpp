#include "sim/metrics/slo.hpp"

#include "sim/base/error.hpp"
#include "tests/catch.hpp"

using namespace foretoken;
using Catch::Matchers::Contains;

TEST_CASE("thresholds are read with class, statistic, comparison and unit") {
  const Slo plain = parse_slo("ttft.p99<500ms");
  CHECK(plain.metric == Metric::ttft);
  CHECK(*plain.quantile == Approx(0.99));
  CHECK(plain.below);
  CHECK(plain.limit_ps == 500'000'000'000);
  CHECK(slo_text(plain) == "ttft.p99 < 500 ms");
  const Slo classed = parse_slo(" realtime:tpot.p99.9 <= 1.5 s ");
  CHECK(classed.class_name == "realtime");
  CHECK(*classed.quantile == Approx(0.999));
  CHECK(classed.inclusive);
  CHECK(slo_text(classed) == "realtime:tpot.p99.9 <= 1.50 s");
  const Slo share = parse_slo("goodput>99%");
  CHECK_FALSE(share.is_latency);
  CHECK(share.limit_share == Approx(0.99));
  CHECK(parse_slo("goodput>0.99").limit_share == 0.99);
  CHECK_FALSE(parse_slo("e2e.mean<10s").quantile.has_value());
  CHECK(*parse_slo("stall_max.max<1s").quantile == 1.0);
}

TEST_CASE("a faulty threshold is refused with what was expected") {
  CHECK_THROWS_WITH(parse_slo("ttft.p99<500"), Contains("unit"));
  CHECK_THROWS_WITH(parse_slo("tftt.p99<500ms"), Contains("did you mean ttft"));
  CHECK_THROWS_WITH(parse_slo("ttft<500ms"), Contains("ttft.p99"));
  CHECK_THROWS_WITH(parse_slo("ttft.p100<500ms"), Contains("percentile"));
  CHECK_THROWS_WITH(parse_slo("ttft.p99=500ms"), Contains("comparison"));
  CHECK_THROWS_WITH(parse_slo("ttft.p99<<500ms"), Contains("comparison"));
  CHECK_THROWS_WITH(parse_slo("ttft.p99<-5ms"), Contains("duration"));
  CHECK_THROWS_WITH(parse_slo("goodput>1.5"), Contains("0 to 1"));
  CHECK_THROWS_WITH(parse_slo("goodput>"), Contains("nothing"));
  CHECK_THROWS_WITH(parse_slo(":ttft.p99<5ms"), Contains("class"));
  for (const char* text : {"", "<", "ttft.", "ttft.p<1s", "ttft.pnan<1s", "ttft.p99<infs", "ttft.p99<1e99s"})
    CHECK_THROWS_AS(parse_slo(text), UsageError);
}

TEST_CASE("a threshold's class must be one of the requests'") {
  std::vector<Slo> slos{parse_slo("realtime:ttft.p99<1s"), parse_slo("ttft.p99<1s")};
  resolve_slos(slos, {"batch", "realtime"});
  CHECK(slos[0].class_index == 1);
  CHECK(slos[1].class_index == -1);
  CHECK_THROWS_WITH(resolve_slos(slos, {"batch", "realtim"}), Contains("did you mean realtim"));
  CHECK_THROWS_AS(resolve_slos(slos, {}), UsageError);
}

TEST_CASE("the limit itself passes only where the comparison includes it") {
  CHECK_FALSE(meets(parse_slo("ttft.p99<1ns"), 1000));
  CHECK(meets(parse_slo("ttft.p99<=1ns"), 1000));
  CHECK(meets(parse_slo("goodput>=0.5"), 0.5));
  CHECK_FALSE(meets(parse_slo("goodput>0.5"), 0.5));
}
