// What several targets need; see fuzz.hpp.
#include "tests/fuzz/fuzz.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace attn::fuzz {
namespace {

int duplicate(int file) {
    const int copy = ::fcntl(file, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) throw std::runtime_error("no file descriptor is left");
    return copy;
}

void put_back(int file, int before) {
    ::dup2(before, file);
    ::close(before);
}

}  // namespace

PipedInput::PipedInput(std::string_view bytes) : before_(duplicate(STDIN_FILENO)) {
    int ends[2];
    const bool is_open = ::pipe(ends) == 0;
    const bool is_whole = is_open && ::write(ends[1], bytes.data(), bytes.size()) ==
                                         static_cast<ssize_t>(bytes.size());
    if (!is_whole) throw std::runtime_error("a pipe that does not hold the input");
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
}

PipedInput::~PipedInput() {
    put_back(STDIN_FILENO, before_);
}

Silence::Silence() : before_(duplicate(STDOUT_FILENO)) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, STDOUT_FILENO);
    ::close(nowhere);
}

Silence::~Silence() {
    put_back(STDOUT_FILENO, before_);
}

std::string file_of(std::string_view bytes, const std::string& name) {
    const std::string path = test::scratch_folder() + "/" + name;
    test::write_text(path, std::string(bytes));
    return path;
}

std::vector<std::string> files_with(std::span<const std::string_view> suffixes,
                                    std::size_t longest) {
    std::vector<std::string> paths;
    for (const char* folder : {"", "../tests"})
        for (const auto& file :
             std::filesystem::recursive_directory_iterator(test::data_path(folder))) {
            const std::string path = file.path().string();
            const bool fits = std::any_of(suffixes.begin(), suffixes.end(),
                                          [&](auto suffix) { return path.ends_with(suffix); });
            if (fits && file.is_regular_file() && file.file_size() <= longest)
                paths.push_back(path);
        }
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> texts;
    texts.reserve(paths.size());
    for (const std::string& path : paths) texts.push_back(test::read_text(path));
    return texts;
}

}  // namespace attn::fuzz
