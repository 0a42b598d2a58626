// The statistics of a model's heads over the texts of a corpus, as sums that can be joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/scan/held_shards.hpp"
#include "core/scan/fixed_sums.hpp"

namespace attn::cli {

struct FailedRecord {
    std::uint64_t number = 0;  ///< in the corpus, from 1
    std::string id;            ///< as JSON
    std::string where, message;
};

/// Failed records of a corpus: their count, and the first of them by number.
struct FailedRecords {
    static constexpr std::size_t max_listed = 1000;

    std::uint64_t count = 0;
    std::vector<FailedRecord> first;

    void add(FailedRecord record);
    void add(const FailedRecords& others);
};

/// The part of the model, "", "encoder" or "decoder", and the number of the layer.
using LayerKey = std::pair<std::string, std::size_t>;

struct LayerSums {
    std::size_t heads = 0;
    std::vector<FixedSums> sums;  ///< (heads, wanted statistics)
};

/// Sums of some texts.
struct TextSums {
    std::uint64_t tokens = 0;
    std::map<LayerKey, LayerSums> layers;

    /// Errors: kind input for sums beyond their range, and for layers of other heads; `place` names
    /// the source of `other`.
    void add(const TextSums& other, const std::vector<std::size_t>& statistics,
             const std::string& place);
};

/// "layer 3, head 2", or "encoder layer 3, head 2".
std::string head_place(const LayerKey& layer, std::size_t head);

struct ScanStats {
    std::string config;                   ///< as JSON: the model and what is computed
    std::vector<std::size_t> statistics;  ///< their places in head_statistics(), ascending
    HeldShards shards{1, 1};
    bool is_complete = false;  ///< false: of an interrupted scan
    std::uint64_t records = 0;
    std::uint64_t digest = 0;  ///< of the records: the sum of digest_of_record() of each
    FailedRecords failed;
    TextSums sums;
};

/// A number that depends on the number and the text of a record.
std::uint64_t digest_of_record(std::uint64_t number, std::string_view text);

}  // namespace attn::cli
