#include "cli/mpi/communicator.hpp"

namespace attn::cli {

std::optional<int> run_on_ranks(FunctionRef<Args()>, FunctionRef<int(const Args&)>) {
    return {};
}

std::string mpi_library() {
    return "none";
}

}  // namespace attn::cli
