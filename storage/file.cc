#include "storage/file.h"

#include <cerrno>

namespace storage {
namespace {

// Checkpoints, snapshots, epoch files: what is read as a whole is small. A larger file is not ours.
constexpr std::uint64_t whole_file_bytes_max = std::uint64_t{256} << 20;

}  // namespace

std::string parent_directory(const std::string& path) {
  std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_no_space(base::Error error) {
  return error == boost::system::errc::no_space_on_device ||
         (error.category() == boost::system::system_category() && error.value() == EDQUOT);
}

base::Result<base::Buffer> FileSystem::read_whole(const std::string& path) {
  TRY(auto file, open(path, OpenMode::read));
  TRY(auto bytes, file->size());
  if (bytes > whole_file_bytes_max)
    return boost::system::errc::make_error_code(boost::system::errc::file_too_large);
  base::Buffer content(bytes);
  TRY_VOID(file->pread(content, 0));
  return content;
}

base::Result<void> FileSystem::write_whole(const std::string& path, base::Bytes content) {
  const std::string temporary = path + ".tmp";
  {
    TRY(auto file, open(temporary, OpenMode::create));
    TRY_VOID(file->pwrite(content, 0));
    TRY_VOID(file->sync());
  }
  TRY_VOID(rename(temporary, path));
  return sync_directory(parent_directory(path));
}

}  // namespace storage
