#include "thimble/base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace thimble {
namespace {

namespace fs = std::filesystem;

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() {
    std::string pattern = testing::TempDir() + "thimble_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/file";
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  size_t NumFiles() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  std::string folder_;
  std::string path_;
};

TEST_F(AtomicFileTest, WritesAndReplaces) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").ok());
  EXPECT_EQ(Content(path_), "old");
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  EXPECT_EQ(Content(path_), "");
  EXPECT_EQ(NumFiles(), 1U);
}

TEST_F(AtomicFileTest, PiecesOfAllSizesArriveInOrder) {
  std::string expected;
  Result<AtomicFile> file = AtomicFile::Create(path_);
  ASSERT_TRUE(file.ok());
  // Around the buffer's 64 KiB: smaller, exact, larger, and an empty one.
  for (size_t size : {1, 65535, 0, 65536, 3, 65533, 200'000, 7}) {
    const std::string piece(size, static_cast<char>('a' + expected.size() % 26));
    ASSERT_TRUE(file->Write(Bytes(piece)).ok());
    expected += piece;
  }
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Content(path_), expected);
}

TEST_F(AtomicFileTest, RelativePath) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_TRUE(WriteFileAtomically("file", "here").ok());
  fs::current_path(before);
  EXPECT_EQ(Content(path_), "here");
}

TEST_F(AtomicFileTest, NothingRemainsWithoutCommit) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").ok());
  {
    Result<AtomicFile> file = AtomicFile::Create(path_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Write(Bytes("new")).ok());
  }
  EXPECT_EQ(Content(path_), "old");
  EXPECT_EQ(NumFiles(), 1U);
}

TEST_F(AtomicFileTest, SurvivesKillAndOverwritesTheStaleTemporary) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").ok());
  const pid_t child = ::fork();
  if (child == 0) {
    Result<AtomicFile> file = AtomicFile::Create(path_);
    if (file.ok() && file->Write(Bytes(std::string(100'000, 'x'))).ok()) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Content(path_), "old");
  EXPECT_TRUE(fs::exists(path_ + ".tmp"));
  ASSERT_TRUE(WriteFileAtomically(path_, "new").ok());
  EXPECT_EQ(Content(path_), "new");
  EXPECT_EQ(NumFiles(), 1U);
}

TEST_F(AtomicFileTest, SecondWriterIsRefused) {
  Result<AtomicFile> first = AtomicFile::Create(path_);
  ASSERT_TRUE(first.ok() && first->Write(Bytes("first")).ok());
  const Result<AtomicFile> second = AtomicFile::Create(path_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kFailed);
  EXPECT_NE(second.error().message.find("another run"), std::string::npos);
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(Content(path_), "first");
  EXPECT_TRUE(WriteFileAtomically(path_, "second").ok());
}

// The limit on file sizes makes writes fail as a full disk does.
TEST_F(AtomicFileTest, FullDiskLeavesThePreviousFile) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").ok());
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit previous_limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &previous_limit), 0);
  const rlimit limit = {100'000, previous_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Result<void> at_once = WriteFileAtomically(path_, std::string(200'000, 'x'));
  Result<AtomicFile> file = AtomicFile::Create(path_);
  Result<void> write;
  while (file.ok() && write.ok()) write = file->Write(Bytes(std::string(1000, 'x')));
  const Result<void> commit = file->Commit();
  ::setrlimit(RLIMIT_FSIZE, &previous_limit);
  std::signal(SIGXFSZ, previous_handler);

  ASSERT_FALSE(at_once.ok());
  EXPECT_EQ(at_once.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(at_once.error().message, path_ + ": cannot write: File too large");
  EXPECT_FALSE(write.ok());
  EXPECT_FALSE(commit.ok());
  EXPECT_EQ(Content(path_), "old");
  EXPECT_EQ(NumFiles(), 1U);
}

TEST_F(AtomicFileTest, CallsAfterCommitFail) {
  Result<AtomicFile> file = AtomicFile::Create(path_);
  ASSERT_TRUE(file.ok() && file->Commit().ok());
  EXPECT_FALSE(file->Write(Bytes("more")).ok());
  EXPECT_FALSE(file->Commit().ok());
}

TEST_F(AtomicFileTest, RefusesPlacesWhereNoFileCanBe) {
  ASSERT_TRUE(WriteFileAtomically(path_, "old").ok());
  for (const std::string& path : {path_ + "/below", folder_ + "/missing/file", folder_,
                                  std::string("/dev/null"), std::string()}) {
    const Result<void> result = WriteFileAtomically(path, "x");
    ASSERT_FALSE(result.ok()) << path;
    EXPECT_EQ(result.error().kind, ErrorKind::kFailed);
    EXPECT_TRUE(result.error().message.starts_with(path)) << result.error().message;
  }
  EXPECT_EQ(NumFiles(), 1U);
}

TEST_F(AtomicFileTest, DoesNotFollowALinkAtTheTemporarysName) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/other", "precious").ok());
  fs::create_symlink(folder_ + "/other", path_ + ".tmp");
  EXPECT_FALSE(WriteFileAtomically(path_, "x").ok());
  EXPECT_EQ(Content(folder_ + "/other"), "precious");
}

TEST_F(AtomicFileTest, OverwritesWhatWasWritten) {
  Result<AtomicFile> file = AtomicFile::Create(path_);
  ASSERT_TRUE(file.ok() && file->Write(Bytes("0123456789")).ok());
  ASSERT_TRUE(file->Overwrite(3, Bytes("xy")).ok());
  ASSERT_TRUE(file->Write(Bytes("ab")).ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Content(path_), "012xy56789ab");
  EXPECT_FALSE(file->Overwrite(0, Bytes("x")).ok());
}

TEST_F(AtomicFileTest, ReplacingKeepsTheOldFile) {
  const std::string next = folder_ + "/next";
  const std::string previous = folder_ + "/previous";
  ASSERT_TRUE(WriteFileAtomically(next, "one").ok());
  ASSERT_TRUE(ReplaceFile(next, path_, previous).ok());  // there is no previous file
  EXPECT_EQ(Content(path_), "one");
  EXPECT_EQ(NumFiles(), 1U);
  for (const char* content : {"two", "three"}) {
    const std::string old = Content(path_);
    ASSERT_TRUE(WriteFileAtomically(next, content).ok());
    ASSERT_TRUE(ReplaceFile(next, path_, previous).ok());
    EXPECT_EQ(Content(path_), content);
    EXPECT_EQ(Content(previous), old);
    EXPECT_EQ(NumFiles(), 2U);
  }
  EXPECT_EQ(ReplaceFile(next, path_, previous).error().kind,
            ErrorKind::kFailed);  // there is no new file
  EXPECT_EQ(Content(path_), "three");
}

TEST_F(AtomicFileTest, MakesFoldersWithParents) {
  EXPECT_TRUE(MakeFolder(folder_ + "/a/b/c").ok());
  EXPECT_TRUE(MakeFolder(folder_ + "/a/b/c").ok());
  EXPECT_TRUE(MakeFolder(folder_ + "/a/b/c/").ok());
  EXPECT_TRUE(fs::is_directory(folder_ + "/a/b/c"));
}

TEST_F(AtomicFileTest, MakeFolderSaysWhyNot) {
  ASSERT_TRUE(WriteFileAtomically(path_, "a file").ok());
  for (const std::string& path :
       {path_, path_ + "/below", folder_ + "/" + std::string(300, 'x'), std::string()}) {
    const Result<void> result = MakeFolder(path);
    ASSERT_FALSE(result.ok()) << path;
    EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(result.error().message.find("'" + path + "'"), std::string::npos);
  }
}

// In a child process without root's rights: permissions do not apply to root.
TEST_F(AtomicFileTest, MakeFolderRefusesAFolderWithoutWritePermission) {
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
    const Result<void> result = MakeFolder(folder_);
    ::_exit(!result.ok() && result.error().kind == ErrorKind::kBadInput ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace thimble
