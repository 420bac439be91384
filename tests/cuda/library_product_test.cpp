#include "kernels/cuda/library_product.hpp"

#include "tests/catch.hpp"

using foretoken::cuda::library_rows_bucket;

TEST_CASE("buckets of rows hold what they are named after and waste a quarter at most beyond 64 rows",
          "[property]") {
  int before = 0;
  for (int rows = 1; rows <= 9000; ++rows) {
    const int bucket = library_rows_bucket(rows);
    REQUIRE(bucket >= rows);
    REQUIRE(bucket >= before);
    REQUIRE(library_rows_bucket(bucket) == bucket);
    REQUIRE(bucket % 16 == 0);
    if (rows > 64) REQUIRE(bucket - rows < rows / 4 + 1);
    before = bucket;
  }
  CHECK(library_rows_bucket(1) == 16);
  CHECK(library_rows_bucket(17) == 32);
  CHECK(library_rows_bucket(129) == 160);
  CHECK(library_rows_bucket(2048) == 2048);
}
