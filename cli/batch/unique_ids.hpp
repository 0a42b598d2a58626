// Ids that are different from record to record, as going on with a batch requires.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace attn::cli {

struct Record;

/// Memory holds every id that was added, some 100 bytes each.
class UniqueIds {
public:
    /// Errors: kind input where an earlier record has the same id.
    void add(const Record& record);

private:
    struct Location {
        std::size_t file, line;  // file: an index of `files_`
    };

    std::unordered_map<std::string, Location> locations_;  // by id, as JSON
    std::vector<std::string> files_;                       // of records that follow one another
};

}  // namespace attn::cli
