#include "cli/scan/scan_stats.hpp"

#include <algorithm>

#include "cli/request/digest.hpp"
#include "core/base/error.hpp"
#include "core/scan/head_statistics.hpp"

namespace attn::cli {

void FailedRecords::add(FailedRecord record) {
    ++count;
    const auto after = std::upper_bound(
        first.begin(), first.end(), record,
        [](const FailedRecord& a, const FailedRecord& b) { return a.number < b.number; });
    first.insert(after, std::move(record));
    if (first.size() > max_listed) first.pop_back();
}

void FailedRecords::add(const FailedRecords& others) {
    for (const FailedRecord& record : others.first) add(record);
    count += others.count - others.first.size();
}

std::string head_place(const LayerKey& layer, std::size_t head) {
    return layer.first + (layer.first.empty() ? "layer " : " layer ") +
           std::to_string(layer.second) + ", head " + std::to_string(head);
}

void TextSums::add(const TextSums& other, const std::vector<std::size_t>& statistics,
                   const std::string& place) {
    if (__builtin_add_overflow(tokens, other.tokens, &tokens))
        throw Error(ErrorKind::input, place, "more than 2^64 tokens; expected fewer");
    for (const auto& [key, from] : other.layers) {
        const auto [at, is_new] = layers.try_emplace(key, from);
        if (is_new) continue;
        LayerSums& to = at->second;
        if (to.heads != from.heads)
            throw Error(ErrorKind::input, place,
                        head_place(key, 0) + ": " + std::to_string(from.heads) +
                            " heads, where other texts have " + std::to_string(to.heads) +
                            "; expected one number");
        for (std::size_t i = 0; i < to.sums.size(); ++i)
            if (!to.sums[i].add(from.sums[i]))
                throw Error(ErrorKind::input, place,
                            std::string(head_statistics()[statistics[i % statistics.size()]].name) +
                                " of " + head_place(key, i / statistics.size()) +
                                " exceeds the range of its sums; expected fewer texts in one "
                                "file");
    }
}

std::uint64_t digest_of_record(std::uint64_t number, std::string_view text) {
    Digest digest;
    digest.add(number);
    digest.add(text);
    return digest.value();
}

}  // namespace attn::cli
