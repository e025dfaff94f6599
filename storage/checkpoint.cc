#include "storage/checkpoint.h"

#include <charconv>
#include <limits>

#include "storage/error.h"
#include "storage/file.h"
#include "storage/log.h"

namespace storage {
namespace {

constexpr std::string_view partition_metadata_name = "partition.metadata";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return parts;
}

}  // namespace

base::Result<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return StorageErrc::corrupt_file;
  return value;
}

base::Result<std::vector<std::vector<std::string_view>>> parse_checkpoint_lines(
    std::string_view text) {
  std::vector<std::string_view> lines = split(text, '\n');
  if (lines.size() < 2 || lines[0] != "0") return StorageErrc::corrupt_file;
  TRY(auto count, parse_number(lines[1]));
  // The count guards against a file that was cut short.
  if (count < 0 || static_cast<std::size_t>(count) != lines.size() - 2)
    return StorageErrc::corrupt_file;
  std::vector<std::vector<std::string_view>> parsed;
  for (std::size_t i = 2; i < lines.size(); ++i) parsed.push_back(split(lines[i], ' '));
  return parsed;
}

std::string to_text(const OffsetCheckpoint& offsets) {
  std::string text = "0\n" + std::to_string(offsets.size()) + "\n";
  for (const auto& [partition, offset] : offsets)
    text += partition.first + " " + std::to_string(partition.second) + " " +
            std::to_string(offset) + "\n";
  return text;
}

base::Result<OffsetCheckpoint> parse_offset_checkpoint(std::string_view text) {
  TRY(auto lines, parse_checkpoint_lines(text));
  OffsetCheckpoint offsets;
  for (const auto& fields : lines) {
    if (fields.size() != 3) return StorageErrc::corrupt_file;
    TRY(auto partition, parse_number(fields[1]));
    TRY(auto offset, parse_number(fields[2]));
    if (partition < 0 || partition > std::numeric_limits<std::int32_t>::max() || offset < 0)
      return StorageErrc::corrupt_file;
    offsets[{std::string(fields[0]), static_cast<std::int32_t>(partition)}] = offset;
  }
  return offsets;
}

base::Result<std::optional<base::Uuid>> read_partition_metadata(FileSystem& files,
                                                                const std::string& directory) {
  std::optional<base::Uuid> id;
  const std::string path = directory + "/" + std::string(partition_metadata_name);
  TRY(bool there, files.exists(path));
  if (!there) return id;
  TRY(auto content, files.read_whole(path));
  bool version_seen = false;
  for (std::string_view line : split(base::as_text(content), '\n')) {
    std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) return StorageErrc::corrupt_file;
    std::string_view key = line.substr(0, colon), value = line.substr(colon + 2);
    if (key == "version" && value == "0") version_seen = true;
    if (key == "topic_id") id = base::Uuid::parse(value);
  }
  if (!version_seen || !id) return StorageErrc::corrupt_file;
  return id;
}

base::Result<void> write_partition_metadata(FileSystem& files, const std::string& directory,
                                            const base::Uuid& topic_id) {
  const std::string text = "version: 0\ntopic_id: " + topic_id.to_string();
  return files.write_whole(directory + "/" + std::string(partition_metadata_name),
                           base::as_bytes(text));
}

}  // namespace storage
