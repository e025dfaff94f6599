#include "tools/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ostream>

#include "storage/error.h"
#include "tools/failure.h"

namespace tools {

namespace {

std::string_view file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

constexpr std::array<std::pair<std::string_view, FileKind>, 5> suffixes{{
    {".log", FileKind::segment},
    {".index", FileKind::offset_index},
    {".timeindex", FileKind::time_index},
    {".txnindex", FileKind::transaction_index},
    {".snapshot", FileKind::producer_snapshot},
}};

}  // namespace

std::optional<FileKind> kind_of(std::string_view path) {
  const std::string_view name = file_name(path);
  if (name == "leader-epoch-checkpoint") return FileKind::epoch_checkpoint;
  if (name == "partition.metadata") return FileKind::partition_metadata;
  const auto dot = name.find('.');
  // Kafka names them with 20 digits; what it renamed (`.deleted`, `.cleaned`) is no live file.
  if (dot != 20 ||
      !std::ranges::all_of(name.substr(0, dot), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  for (const auto& [suffix, kind] : suffixes)
    if (name.substr(dot) == suffix) return kind;
  return std::nullopt;
}

DumpLine::DumpLine(std::string_view kind, bool json) : json_(json), plain_(kind) {
  if (json_) object_.begin_object().field("kind", kind);
}

DumpLine& DumpLine::add(std::string_view name, std::string_view text) {
  if (json_) {
    object_.field(name, text);
  } else {
    plain_ += fmt::format(" {} {}", name, text);
  }
  return *this;
}

DumpLine& DumpLine::mark(std::string_view name, bool on) {
  if (json_) {
    object_.field(name, on);
  } else if (on) {
    plain_ += fmt::format(" {}", name);
  }
  return *this;
}

std::string DumpLine::text() const {
  return json_ ? object_.text() + "}\n" : plain_ + "\n";
}

SegmentScan::SegmentScan(const storage::File& file) : file_(file) {
  const auto size = file.size();
  if (size.has_error()) {
    stopped_ = size.error();
  } else {
    size_ = *size;
  }
}

bool SegmentScan::next() {
  if (stopped_ || next_ == size_) return false;
  std::array<std::byte, protocol::batch_header_bytes> header;
  const std::uint64_t left = size_ - next_;
  const base::MutableBytes wanted(header.data(), std::min<std::uint64_t>(left, header.size()));
  if (const auto read = file_.pread(wanted, next_); read.has_error()) {
    stopped_ = read.error();
    return false;
  }
  const auto info = protocol::parse_batch_header(wanted);
  if (info.has_error()) {
    stopped_ = info.error();
  } else if (info->size_bytes > left) {
    stopped_ = protocol::BatchErrc::incomplete;
  } else {
    info_ = *info;
    next_ += info_.size_bytes;
    return true;
  }
  return false;
}

Dump::Dump(storage::FileSystem& files, std::string path, DumpOptions options, std::ostream& out)
    : files_(files), path_(std::move(path)), options_(options), out_(out) {
  const std::string_view whole = path_;
  const auto slash = whole.rfind('/');
  if (slash != std::string_view::npos)
    mirror_state_ = file_name(whole.substr(0, slash)).starts_with("__mirror_state-");
}

bool Dump::run() {
  const auto kind = kind_of(path_);
  if (!kind)
    throw Failure(
        ExitCode::usage,
        fmt::format("'{}' is not named like a file of a partition directory: give a segment "
                    "(00000000000000000000.log), its .index, .timeindex, .txnindex or .snapshot, "
                    "leader-epoch-checkpoint or partition.metadata",
                    path_));
  switch (*kind) {
    case FileKind::segment:
      segment();
      break;
    case FileKind::offset_index:
      offset_index();
      break;
    case FileKind::time_index:
      time_index();
      break;
    case FileKind::transaction_index:
      transaction_index();
      break;
    case FileKind::producer_snapshot:
      producer_snapshot();
      break;
    case FileKind::epoch_checkpoint:
      epoch_checkpoint();
      break;
    case FileKind::partition_metadata:
      partition_metadata();
      break;
  }
  return problems_ == 0;
}

void Dump::print(const DumpLine& line) {
  out_ << line.text();
}

void Dump::problem(const std::string& what) {
  ++problems_;
  if (options_.json) {
    print(DumpLine("problem", true).add("message", what));
  } else {
    out_ << "INVALID: " << what << '\n';
  }
}

void Dump::summary(std::string_view what, std::uint64_t count) {
  DumpLine line("summary", options_.json);
  line.add(what, count).add("problems", problems_);
  print(line);
}

std::shared_ptr<storage::File> Dump::open(const std::string& path) const {
  auto file = files_.open(path, storage::OpenMode::read);
  if (file.has_error())
    throw Failure(
        ExitCode::failed,
        fmt::format(
            "cannot read '{}': {}; give the path of a file that exists and that you may read", path,
            file.error().message()));
  return *file;
}

base::Buffer Dump::whole_file(std::uint64_t size_max) const {
  const auto file = open(path_);
  const auto size = file->size();
  if (size.has_value() && *size > size_max)
    throw Failure(ExitCode::failed,
                  fmt::format("'{}' holds {} bytes, more than the {} that such a file can have; "
                              "give a file that Kafka or Calque wrote",
                              path_, *size, size_max));
  base::Buffer content(size.has_value() ? *size : 0);
  const auto read = size.has_value() ? file->pread(content, 0) : base::Result<void>(size.error());
  if (read.has_error())
    throw Failure(ExitCode::failed, fmt::format("cannot read '{}': {}; check the disk", path_,
                                                read.error().message()));
  return content;
}

std::shared_ptr<storage::File> Dump::segment_beside() const {
  const std::string log = path_.substr(0, path_.rfind('.')) + ".log";
  const auto exists = files_.exists(log);
  return exists.has_value() && *exists ? open(log) : nullptr;
}

std::int64_t Dump::named_offset() const {
  const std::string_view name = file_name(path_);
  std::int64_t offset = -1;
  std::from_chars(name.data(), name.data() + 20, offset);
  return offset;  // -1 when the digits do not fit, which no entry can follow
}

std::uint64_t Dump::entry_count(base::Bytes content, std::uint64_t entry_bytes) {
  std::uint64_t used = content.size();
  while (used > 0 && content[used - 1] == std::byte{0}) --used;
  // The last entry may itself end in zeros.
  std::uint64_t count = (used + entry_bytes - 1) / entry_bytes;
  if (content.size() % entry_bytes != 0) {
    problem(fmt::format("the size {} is no multiple of the {} bytes of an entry", content.size(),
                        entry_bytes));
    count = std::min<std::uint64_t>(count, content.size() / entry_bytes);
  }
  if (const std::uint64_t tail = content.size() - std::min(content.size(), count * entry_bytes);
      tail > 0)
    print(DumpLine("preallocated", options_.json).add("bytes", tail));
  return count;
}

ExitCode dump_log(const Arguments& arguments, Output& output) {
  const DumpOptions options{.records = arguments.flag("records"), .json = arguments.flag("json")};
  Dump dump(storage::posix_file_system(), arguments.positional, options, output.out);
  return dump.run() ? ExitCode::ok : ExitCode::failed;
}

}  // namespace tools
