#include "cli/scan/merge_stats.hpp"

#include "core/base/error.hpp"

namespace attn::cli {

void merge_stats(const std::vector<io::InputFile>& files, const Args&) {
    throw Error(ErrorKind::unsupported, files.front().place,
                "statistics are not joined yet; expected another kind of file");
}

}  // namespace attn::cli
