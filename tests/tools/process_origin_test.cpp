// Which container a control group's path means.
#include "tools/common/process_origin.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gpucap::tools {
namespace {

const std::string kId = "4f1e0c3a9b7d5e2f8a6c4b0d1e3f5a7b9c2d4e6f8a0b1c3d5e7f9a0b2c4d6e8f";
const std::string kOther = "00000c3a9b7d5e2f8a6c4b0d1e3f5a7b9c2d4e6f8a0b1c3d5e7f9a0b2c4d6e8f";

TEST(Container, IsFoundInEveryRuntimesPath) {
  const std::string paths[] = {
      "/docker/" + kId,
      "/system.slice/docker-" + kId + ".scope",
      "/../../system.slice/docker-" + kId + ".scope",
      "/system.slice/nerdctl-" + kId + ".scope",
      "/default/" + kId,
      "/machine.slice/libpod-" + kId + ".scope",
      "/machine.slice/libpod-" + kId + ".scope/container",
      "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope/container",
      "/libpod_parent/libpod-" + kId,
      "/kubepods/besteffort/pod2d9c3f0e-8c9f-4b7a-8a52-0d9d3c8d6a11/" + kId,
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod2d9c3f0e_8c9f.slice/cri-containerd-" + kId +
          ".scope",
      "/kubepods.slice/kubepods-pod2d9c3f0e.slice/crio-" + kId + ".scope",
      "/kubepods.slice/kubepods-pod2d9c3f0e.slice/crio-" + kId + ".scope/container/init.scope",
      "/kubepods-burstable-pod2d9c3f0e.slice:cri-containerd:" + kId,
      "/ecs/5b1f6a0e/" + kId,
      "/docker/" + kOther + "/docker/" + kId,
  };
  for (const std::string& path : paths) {
    EXPECT_EQ(container_in_cgroup("0::" + path + "\n"), kId) << path;
    EXPECT_EQ(container_in_cgroup("12:memory:" + path), kId) << path;
  }
}

TEST(Container, GoesByNameWhereTheRuntimeDoes) {
  EXPECT_EQ(container_in_cgroup("0::/lxc.payload.web/system.slice/cron.service\n"), "web");
  EXPECT_EQ(container_in_cgroup("4:cpu:/lxc/web\n"), "web");
  EXPECT_EQ(container_in_cgroup("4:cpu:/lxc.payload/web\n"), "web");
  EXPECT_EQ(container_in_cgroup("0::/machine.slice/machine-web.scope\n"), "web");
  EXPECT_EQ(container_in_cgroup("0::/machine.slice/systemd-nspawn@web.service/payload\n"), "web");
}

TEST(Container, OfVersion1IsInAnyLine) {
  EXPECT_EQ(container_in_cgroup("13:misc:/\n12:memory:/docker/" + kId + "\n1:name=systemd:/docker/" + kId + "\n0::/\n"),
            kId);
}

TEST(Container, IsNotASessionAServiceOrAScope) {
  for (const char* text :
       {"0::/\n", "", "\n", "nonsense", "0:", "0::/user.slice/user-1000.slice/session-2.scope\n",
        "0::/system.slice/ssh.service\n", "0::/init.scope\n", "0::/system.slice/run-u12.scope\n",
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal-1.scope\n",
        "0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope\n", "0::/kubepods.slice/kubepods-pod2d9c3f0e.slice\n"}) {
    EXPECT_EQ(container_in_cgroup(text), "") << text;
  }
  EXPECT_EQ(container_in_cgroup("0::/machine.slice/libpod-conmon-" + kId + ".scope\n"), "") << "the monitor is outside";
  EXPECT_EQ(container_in_cgroup("0::/docker/" + kId.substr(1) + "\n"), "") << "too short for an id";
}

TEST(Container, IsCleanText) { EXPECT_EQ(container_in_cgroup("0::/lxc/a\x1b[2J\n"), "a?[2J"); }

TEST(Parent, IsReadFromTheStatus) {
  EXPECT_EQ(parent_in_status("Name:\tx\nPid:\t5\nPPid:\t4711\nTracerPid:\t1\n"), 4711);
  EXPECT_EQ(parent_in_status("Name:\tx\n"), 0);
  EXPECT_EQ(process_origin(getpid()).parent_pid, getppid());
  EXPECT_EQ(process_origin(0x7fffffff).parent_pid, 0);
}

}  // namespace
}  // namespace gpucap::tools
