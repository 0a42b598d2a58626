// How much memory this program may use, and who says so.
#pragma once

#include <string>

namespace attn {

struct MemoryLimit {
    double bytes;
    const char* words;  ///< "this container may use": what stands before the number
};

/// The least of: the machine's memory; memory.max, memory.high and memory.limit_in_bytes of the
/// process's control group and of all that it lies in, of both versions; what `ulimit -v` and
/// `ulimit -d` allow. The limit, not what happens to be free: a question has the same answer
/// whatever else runs. `groups` is where control groups are mounted, `own` says which are the
/// process's; without these files there is no such limit. Sources: cgroups(7), getrlimit(2).
MemoryLimit memory_limit(const std::string& groups = "/sys/fs/cgroup",
                         const std::string& own = "/proc/self/cgroup");

}  // namespace attn
