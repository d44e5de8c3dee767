// The ways in which a member of a group makes children, all of them with the driver in use: see make_child.
#pragma once

#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "shim/driver/cuda.h"

inline int status_of(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -3;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -4;
}

// What a child does with what it inherited, before it ends in the orderly way: all of it fails, and none must show.
[[noreturn]] inline void use_and_exit() {
  CUdeviceptr p = 0;
  const bool taken = cuMemAlloc_v2(&p, 1 << 20) == CUDA_SUCCESS;
  std::exit(taken ? 8 : 7);
}

inline pid_t raw_clone() { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr)); }

// "fork", "clone": a child that tries to use the driver and exits, 7 if it could not; "quick-fork": one that leaves by
// _exit; "vfork", "spawn", "system": another program, 0; "worker": a child that lives on, whose pid is printed;
// "exec": this process becomes another program, which lives until its stdin closes.
inline int make_child(const std::string& how, const std::string& argument) {
  char name[] = "true";
  char* arguments[] = {name, nullptr};
  std::fflush(stdout);
  if (how == "fork" || how == "clone") {
    const pid_t child = how == "fork" ? fork() : raw_clone();
    if (child == 0) use_and_exit();
    return status_of(child);
  }
  if (how == "quick-fork") {
    const pid_t child = fork();
    if (child == 0) _exit(6);
    return status_of(child);
  }
  if (how == "vfork") {
    const pid_t child = vfork();
    if (child == 0) {
      execv("/bin/true", arguments);
      _exit(127);
    }
    return status_of(child);
  }
  if (how == "spawn") {
    pid_t child = -1;
    if (posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ) != 0) return -3;
    return status_of(child);
  }
  if (how == "system") return std::system("exit 0");
  if (how == "worker" || how == "clone-worker") {
    const pid_t child = how == "worker" ? fork() : raw_clone();
    if (child == 0)
      for (;;) pause();
    std::printf("child=%d\n", static_cast<int>(child));
    std::fflush(stdout);
    return child > 0 ? 0 : -3;
  }
  if (how == "exec") {
    char shell[] = "sh", option[] = "-c", wait[] = "echo exec 0 0; read line";
    char* command[] = {shell, option, wait, nullptr};
    if (argument == "bare") unsetenv("LD_PRELOAD");
    execv("/bin/sh", command);
    return -3;
  }
  return -2;
}
