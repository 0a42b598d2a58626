#include "cli/batch/unique_ids.hpp"

#include "cli/batch/records.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"

namespace attn::cli {

void UniqueIds::add(const Record& record) {
    if (files_.empty() || files_.back() != record.file) files_.push_back(record.file);
    const std::optional<std::string> given = given_id(record);
    const std::string id = given.value_or(record.id);
    const auto [found, is_new] =
        locations_.try_emplace(id, Location{files_.size() - 1, record.line});
    if (is_new) return;
    const std::string other = record_place(files_[found->second.file], found->second.line);
    throw Error(ErrorKind::input, record.place(),
                std::string(given ? "" : "has no \"id\" that can be read; its default ") + "id " +
                    io::shortened(id) + " is also the id of " + other +
                    "; --resume expects a different \"id\" for each record");
}

}  // namespace attn::cli
