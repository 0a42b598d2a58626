#include "io/file/output_folder.hpp"

#include <filesystem>

#include "io/file/access.hpp"
#include "io/file/path.hpp"
#include "io/file/temporary.hpp"

namespace attn::io {

namespace fs = std::filesystem;

OutputFolder::OutputFolder(const std::string& path, const std::set<std::string>& files,
                           const std::set<std::string>& replaced)
    : target_(path) {
    while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
    std::error_code error, missing;
    if (fs::is_symlink(fs::symlink_status(target_, missing)))
        target_ = fs::canonical(target_, error).string();
    if (error) fail_to_write(path, error.value());
    if (path_exists(target_))
        for (fs::directory_iterator entry(target_, error), end; !error && entry != end;
             entry.increment(error)) {
            require_unread(entry->path().string());
            const bool is_file = fs::is_regular_file(entry->symlink_status(error));
            if (!is_file || !replaced.contains(entry->path().filename().string()))
                throw Error(ErrorKind::io, entry->path().string(),
                            "is not part of a result, and would be deleted with its folder; "
                            "expected a folder of a result alone, or a new name");
        }
    temporary_ = path_beside(target_, new_temporary_name());
    for (const std::string& file : files) (listed_ += path_of(file)) += '\0';
    (listed_ += temporary_) += '\0';
    if (!error) fs::create_directory(temporary_, error);
    if (error) fail_to_write(path, error.value());
    list_folder(listed_.c_str());
}

OutputFolder::~OutputFolder() {
    remove_listed_folder();
}

std::string OutputFolder::path_of(const std::string& file) const {
    return path_in(temporary_, file);
}

void OutputFolder::commit() {
    const std::string old = path_beside(target_, new_temporary_name());
    list_folder(nullptr);  // a signal during the next steps removes nothing
    std::error_code error, ignored;
    fs::rename(target_, old, ignored);
    fs::rename(temporary_, target_, error);
    if (error) {
        fs::rename(old, target_, ignored);
        list_folder(listed_.c_str());
        fail_to_write(target_, error.value());
    }
    fs::remove_all(old, ignored);
}

}  // namespace attn::io
