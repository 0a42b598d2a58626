// Checks that ids differ between records, as resuming a batch requires.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace attn::cli {

struct Record;

/// Memory holds every added id, about 100 bytes each.
class UniqueIds {
public:
    /// Errors: kind input if an earlier record has the same id.
    void add(const Record& record);

private:
    struct Location {
        std::size_t file, line;  // file: an index of `files_`
    };

    std::unordered_map<std::string, Location> locations_;  // by id as JSON
    std::vector<std::string> files_;                       // one per run of consecutive records
};

}  // namespace attn::cli
