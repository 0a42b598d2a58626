// The statistics of a model's heads over the texts of a corpus, as sums that can be joined; and
// their file, JSON that is plotted and compared as arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/args/args.hpp"
#include "core/scan/fixed_sums.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

struct FailedRecord {
    std::uint64_t number = 0;  ///< in the corpus, from 1
    std::string id;            ///< as JSON
    std::string location, message;
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
    std::uint64_t tokens = 0, truncated_texts = 0;
    std::map<LayerKey, LayerSums> layers;

    /// Errors: kind input for sums beyond their range, and for layers of other heads; `location`
    /// names the source of `other`.
    void add(const TextSums& other, const std::vector<std::size_t>& statistics,
             const std::string& location);
};

/// "layer 3, head 2", or "encoder layer 3, head 2".
std::string head_location(const LayerKey& layer, std::size_t head);

/// The records of a corpus whose number, from 1 on, is one of `held` modulo `of`. All of them are
/// shard 1 of 1.
struct HeldShards {
    static constexpr std::uint64_t most = 1'000'000;

    std::uint64_t of = 1;
    std::vector<std::uint64_t> held{1};  ///< ascending, from 1 to `of`

    bool operator==(const HeldShards&) const = default;
};

struct ScanStats {
    std::string config;                   ///< as JSON: the model and what is computed
    std::vector<std::size_t> statistics;  ///< their indices in head_statistics(), ascending
    HeldShards shards;
    bool is_complete = false;  ///< false: of an interrupted scan
    std::uint64_t records = 0;
    std::uint64_t digest = 0;  ///< of the records: the sum of a number of each
    FailedRecords failed;
    TextSums sums;
};

/// One line. Equal statistics give equal bytes.
std::string stats_text(const ScanStats& stats);

/// Errors: kind input for anything that stats_text() does not write.
ScanStats read_stats(const io::InputFile& file);

/// Writes the sums of all files to --output: the bytes that one scan of all their texts writes, in
/// any grouping and order. Errors: kind input for files of different models, statistics, corpora or
/// divisions, for the same shard in two files, and for sums beyond their range.
void merge_stats(const std::vector<io::InputFile>& files, const Args& args);

}  // namespace attn::cli
