#pragma once
// Catch2 3 where it is installed, Debian's 2.13 otherwise; both give the same macros and Catch::Approx.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
