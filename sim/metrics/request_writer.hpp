#pragma once
#include <cstdint>
#include <string>

#include "sim/base/files.hpp"
#include "sim/metrics/metric.hpp"
#include "sim/metrics/request_record.hpp"

namespace foretoken {

/// Form of per-request output.
enum class RequestFormat : std::uint8_t { csv, jsonl };

/// Writes every request as it leaves the run, in constant memory; the file appears whole on `commit`, or not
/// at all. Times are in milliseconds; empty (CSV) or absent (JSONL) where not defined.
class RequestWriter final : public RequestSink {
 public:
  /// `names` is read when a request is written, so that it may grow during the run; it must outlive the
  /// writer.
  RequestWriter(std::string path, RequestFormat format, const GroupNames& names);
  void write(const RequestRecord& record) override;
  void commit();

 private:
  AtomicFile file_;
  RequestFormat format_;
  const GroupNames* names_;
  std::string buffer_;
};

}  // namespace foretoken
