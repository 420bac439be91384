#pragma once
#include <string>
#include <vector>

#include "kernels/cuda/simt/emulator.hpp"

namespace foretoken::test {

/// Runs `call` in three orders of threads, the last one at random, and restores the options.
template <class Call>
void in_all_orders(Call&& call) {
  using cuda::simt::Order;
  const cuda::simt::Options before = cuda::simt::options();
  for (const Order order : {Order::forward, Order::reverse, Order::random}) {
    cuda::simt::options().order = order;
    try {
      call();
    } catch (...) {
      cuda::simt::options() = before;
      throw;
    }
  }
  cuda::simt::options() = before;
}

/// What a launch of a faulty kernel reports, or nothing when it goes unnoticed.
template <class Call>
std::string fault_of(Call&& call) {
  try {
    call();
  } catch (const cuda::simt::Fault& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace foretoken::test
