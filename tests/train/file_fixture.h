// Shared by tests of files: a temporary folder, and reading and writing raw bytes.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

namespace thimble {

// Each test gets an empty folder, removed afterwards.
class FileFixture : public testing::Test {
 protected:
  FileFixture() {
    std::string pattern = testing::TempDir() + "thimble_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/file.safetensors";
  }
  ~FileFixture() override {
    std::error_code ignored;  // a process that was killed may have left another one there
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string folder_;
  std::string path_;
};

inline std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void Put(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// A safetensors file from its parts, right or wrong.
inline std::string RawFile(uint64_t header_bytes, const std::string& header, size_t data_bytes) {
  std::string file(reinterpret_cast<const char*>(&header_bytes), sizeof(header_bytes));
  return file + header + std::string(data_bytes, '\x01');
}
inline std::string RawFile(const std::string& header, size_t data_bytes) {
  return RawFile(header.size(), header, data_bytes);
}

template <class T>
std::span<const std::byte> BytesOf(const T& values) {
  return std::as_bytes(std::span(values));
}

// During its lifetime files cannot grow beyond `max_bytes`: writes fail as on a full disk.
class ScopedFileSizeLimit {
 public:
  explicit ScopedFileSizeLimit(rlim_t max_bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit = {max_bytes, previous_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~ScopedFileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, handler_);
  }
  ScopedFileSizeLimit(const ScopedFileSizeLimit&) = delete;
  ScopedFileSizeLimit& operator=(const ScopedFileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit previous_ = {};
};

}  // namespace thimble
