// The least of all limits on the memory of this program.
#include "core/base/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace attn {
namespace {

void lower(MemoryLimit& limit, double bytes, const char* words) {
    if (bytes < limit.bytes) limit = {bytes, words};
}

/// The least limit of a group and its ancestors, up to the mount. A path outside the mount begins
/// with "/..": then only the mount itself is known.
void lower_by_groups(MemoryLimit& limit, const std::string& mount, std::string path) {
    if (path.starts_with("/..")) path.clear();
    for (;;) {
        for (const char* name : {"/memory.max", "/memory.high", "/memory.limit_in_bytes"}) {
            std::ifstream file(mount + path + name);
            double bytes = 0;  // no number: "max", or no such file
            if (file >> bytes) lower(limit, bytes, "this container may use");
        }
        if (path.find_first_not_of('/') == std::string::npos) return;
        path.erase(path.rfind('/'));
    }
}

void lower_by_resource(MemoryLimit& limit, int resource, double processes, const char* words) {
    struct rlimit allowed {};
    if (::getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &allowed) == 0 &&
        allowed.rlim_cur != RLIM_INFINITY)
        lower(limit, processes * static_cast<double>(allowed.rlim_cur), words);
}

}  // namespace

MemoryLimit memory_limit(double processes, const std::string& groups, const std::string& own) {
    MemoryLimit limit{static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
                          static_cast<double>(::sysconf(_SC_PAGESIZE)),
                      "this machine has"};
    // "0::/path" is version 2, "4:cpu,memory:/path" version 1.
    std::ifstream lines(own);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (controllers.empty())
            for (const char* mount : {"", "/unified"}) lower_by_groups(limit, groups + mount, path);
        else if (("," + controllers + ",").find(",memory,") != std::string::npos)
            lower_by_groups(limit, groups + "/memory", path);
    }
    lower_by_resource(limit, RLIMIT_AS, processes,
                      processes == 1 ? "ulimit -v allows" : "ulimit -v allows them together");
    lower_by_resource(limit, RLIMIT_DATA, processes,
                      processes == 1 ? "ulimit -d allows" : "ulimit -d allows them together");
    return limit;
}

}  // namespace attn
