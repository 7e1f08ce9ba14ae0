// A library for LD_PRELOAD: it counts the system calls that can fail and makes one of them fail, or
// kills the process there. tests/end_to_end/fault_injection_test.cc and tools/kill_and_resume
// select the call with environment variables:
//
//   THIMBLE_FAULT_CALL    the number of the call, from 1
//   THIMBLE_FAULT_KIND    only calls of this kind are counted ("write"); if not set, all calls
//   THIMBLE_FAULT_ACTION  an errno value: the call fails with it and does nothing;
//                         "short": half of the bytes are read or written;
//                         "kill-before", "kill-after": SIGKILL before or after the call.
//                         With '+' at the end: every call from this one on
//   THIMBLE_FAULT_LOG     a file that gets a line for each call: its number, its kind
//
// Standard streams and child processes are not affected. Internal calls of the C library (fopen,
// malloc's mmap) are not intercepted. System calls are made directly, so that nothing here depends
// on the replaced functions.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#if !defined(__x86_64__)
#error "the system call below is written for x86-64"
#endif

namespace {

// The kernel's return value: a negative errno value on failure.
long Kernel(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result = 0;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

long Address(const void* pointer) {
  return reinterpret_cast<long>(pointer);  // NOLINT: required by the kernel
}

// Converts the kernel's return value to that of the C library.
long Answer(long result) {
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

enum class Action { kNone, kFail, kShort, kKillBefore, kKillAfter };

struct Settings {
  long call = 0;
  const char* kind = nullptr;
  Action action = Action::kNone;
  long error = 0;
  bool from_then_on = false;
  int log = -1;
  int (*create_thread)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = nullptr;
};

Action ParseAction(const char* text, size_t length) {
  const auto is = [&](const char* word) {
    return std::strlen(word) == length && std::memcmp(word, text, length) == 0;
  };
  if (is("short")) return Action::kShort;
  if (is("kill-before")) return Action::kKillBefore;
  if (is("kill-after")) return Action::kKillAfter;
  return Action::kFail;
}

Settings ReadSettings() {
  Settings settings;
  settings.create_thread = reinterpret_cast<decltype(settings.create_thread)>(  // NOLINT: dlsym
      dlsym(RTLD_NEXT, "pthread_create"));
  settings.kind = std::getenv("THIMBLE_FAULT_KIND");
  if (const char* path = std::getenv("THIMBLE_FAULT_LOG"); path != nullptr) {
    settings.log = static_cast<int>(Kernel(SYS_openat, AT_FDCWD, Address(path),
                                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  }
  const char* call = std::getenv("THIMBLE_FAULT_CALL");
  const char* action = std::getenv("THIMBLE_FAULT_ACTION");
  if (call == nullptr || action == nullptr) return settings;
  settings.call = std::atol(call);
  size_t length = std::strlen(action);
  settings.from_then_on = length > 0 && action[length - 1] == '+';
  if (settings.from_then_on) --length;
  settings.action = ParseAction(action, length);
  settings.error = std::atol(action);
  return settings;
}

const Settings& GetSettings() {
  static const Settings settings = ReadSettings();
  return settings;
}

__attribute__((constructor)) void Start() {
  GetSettings();
  for (const char* name : {"LD_PRELOAD", "THIMBLE_FAULT_CALL", "THIMBLE_FAULT_KIND",
                           "THIMBLE_FAULT_ACTION", "THIMBLE_FAULT_LOG"}) {
    unsetenv(name);
  }
}

void Log(long number, const char* kind) {
  char line[64];
  size_t length = 0;
  char digits[20];
  size_t count = 0;
  for (; number > 0; number /= 10) digits[count++] = static_cast<char>('0' + number % 10);
  while (count > 0) line[length++] = digits[--count];
  line[length++] = ' ';
  for (; *kind != '\0'; ++kind) line[length++] = *kind;
  line[length++] = '\n';
  Kernel(SYS_write, GetSettings().log, Address(line), static_cast<long>(length));
}

void Kill() { Kernel(SYS_kill, Kernel(SYS_getpid), SIGKILL); }

// Counts a call; returns what to do with it.
Action ActionOf(const char* kind) {
  static std::atomic<long> num_calls{0};
  const Settings& settings = GetSettings();
  if (settings.kind != nullptr && std::strcmp(settings.kind, kind) != 0) return Action::kNone;
  const long number = ++num_calls;
  if (settings.log >= 0) Log(number, kind);
  const bool chosen = settings.from_then_on ? number >= settings.call : number == settings.call;
  return chosen && settings.call > 0 ? settings.action : Action::kNone;
}

// Counts the call and makes it, or not. The argument of `make` is whether to do only half.
template <class Make>
long Call(const char* kind, const Make& make) {
  const Action action = ActionOf(kind);
  if (action == Action::kKillBefore) Kill();
  if (action == Action::kFail) {
    // close() releases the descriptor even if it fails.
    if (std::strcmp(kind, "close") == 0) make(false);
    errno = static_cast<int>(GetSettings().error);
    return -1;
  }
  const long result = make(action == Action::kShort);
  if (action == Action::kKillAfter) Kill();
  return Answer(result);
}

long SomeOf(size_t count, bool half) {
  return static_cast<long>(half && count > 1 ? count / 2 : count);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  return static_cast<int>(
      Call("open", [&](bool) { return Kernel(SYS_openat, AT_FDCWD, Address(path), flags, mode); }));
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  return static_cast<int>(
      Call("open", [&](bool) { return Kernel(SYS_openat, folder, Address(path), flags, mode); }));
}

int creat(const char* path, mode_t mode) {
  return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);  // NOLINT: the definition of creat
}

ssize_t read(int file, void* bytes, size_t count) {
  return Call("read", [&](bool half) {
    return Kernel(SYS_read, file, Address(bytes), SomeOf(count, half));
  });
}

ssize_t pread(int file, void* bytes, size_t count, off_t offset) {
  return Call("read", [&](bool half) {
    return Kernel(SYS_pread64, file, Address(bytes), SomeOf(count, half), offset);
  });
}

// The program's messages must not be affected, so that tests can read them.
ssize_t write(int file, const void* bytes, size_t count) {
  if (file <= 2) return Answer(Kernel(SYS_write, file, Address(bytes), static_cast<long>(count)));
  return Call("write", [&](bool half) {
    return Kernel(SYS_write, file, Address(bytes), SomeOf(count, half));
  });
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  return Call("write", [&](bool half) {
    return Kernel(SYS_pwrite64, file, Address(bytes), SomeOf(count, half), offset);
  });
}

int fsync(int file) {
  return static_cast<int>(Call("fsync", [&](bool) { return Kernel(SYS_fsync, file); }));
}

int fdatasync(int file) {
  return static_cast<int>(Call("fsync", [&](bool) { return Kernel(SYS_fdatasync, file); }));
}

int rename(const char* from, const char* to) {
  return static_cast<int>(
      Call("rename", [&](bool) { return Kernel(SYS_rename, Address(from), Address(to)); }));
}

int link(const char* from, const char* to) {
  return static_cast<int>(
      Call("link", [&](bool) { return Kernel(SYS_link, Address(from), Address(to)); }));
}

int unlink(const char* path) {
  return static_cast<int>(Call("unlink", [&](bool) { return Kernel(SYS_unlink, Address(path)); }));
}

int mkdir(const char* path, mode_t mode) {
  return static_cast<int>(
      Call("mkdir", [&](bool) { return Kernel(SYS_mkdir, Address(path), mode); }));
}

int ftruncate(int file, off_t size) {
  return static_cast<int>(
      Call("ftruncate", [&](bool) { return Kernel(SYS_ftruncate, file, size); }));
}

off_t lseek(int file, off_t offset, int whence) {
  return Call("lseek", [&](bool) { return Kernel(SYS_lseek, file, offset, whence); });
}

int close(int file) {
  return static_cast<int>(Call("close", [&](bool) { return Kernel(SYS_close, file); }));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // there is also a struct of this name
int flock(int file, int operation) {
  return static_cast<int>(Call("flock", [&](bool) { return Kernel(SYS_flock, file, operation); }));
}
#pragma GCC diagnostic pop

int mprotect(void* address, size_t length, int protection) {
  return static_cast<int>(Call("mprotect", [&](bool) {
    return Kernel(SYS_mprotect, Address(address), static_cast<long>(length), protection);
  }));
}

// Programs that count their mappings (src/base/malloc_interposer.cc) define mmap themselves, which
// calls this function.
long syscall(long number, ...) {
  long words[6];
  va_list rest;
  va_start(rest, number);
  for (long& word : words) word = va_arg(rest, long);
  va_end(rest);
  const auto make = [&](bool) {
    return Kernel(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  };
  return number == SYS_mmap ? Call("mmap", make) : Answer(make(false));
}

void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) {
  return reinterpret_cast<void*>(  // NOLINT: the kernel returns an address
      syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
  int code = 0;
  const long called = Call("thread", [&](bool) {
    code = GetSettings().create_thread(thread, attributes, body, argument);
    return 0L;
  });
  return called == 0 ? code : errno;
}

}  // extern "C"
