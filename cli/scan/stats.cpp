#include <algorithm>
#include <string_view>

#include "cli/request/digest.hpp"
#include "cli/request/request.hpp"
#include "cli/scan/stats.hpp"
#include "core/base/error.hpp"
#include "core/scan/head_statistics.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

/// A list of each layer's list, which has `append` write a value for each head.
template <class Append>
std::string by_head(const ScanStats& stats, std::size_t statistic, const Append& append) {
    std::string text = "[";
    for (const auto& [key, layer] : stats.sums.layers) {
        text += text.back() == '[' ? "[" : ",[";
        for (std::size_t head = 0; head < layer.heads; ++head) {
            if (head != 0) text += ',';
            append(text, layer.sums[head * stats.statistics.size() + statistic]);
        }
        text += ']';
    }
    return text += ']';
}

/// Null without values.
template <class Value>
std::string numbers_by_head(const ScanStats& stats, std::size_t statistic, const Value& value) {
    return by_head(stats, statistic, [&](std::string& text, const FixedSums& sums) {
        if (sums.count == 0)
            text += "null";
        else
            io::append_json_number(text, value(sums));
    });
}

std::string layers_text(const ScanStats& stats) {
    std::string text = "[";
    for (const auto& [key, layer] : stats.sums.layers) {
        text += text.back() == '[' ? "{" : ",{";
        if (!key.first.empty()) io::append_member(text, "part", key.first);
        io::append_member(text, "layer", key.second);
        io::append_member(text, "heads", layer.heads);
        text += '}';
    }
    return text += ']';
}

std::string corpus_text(const ScanStats& stats) {
    std::string shards = "{";
    io::append_member(shards, "of", stats.shards.of);
    io::append_member(shards, "held", stats.shards.held);
    std::string first = "[";
    for (const FailedRecord& record : stats.failed.first) {
        first += first.back() == '[' ? "{" : ",{";
        io::append_member(first, "record", record.number);
        io::append_member(first, "id", io::JsonText{record.id});
        io::append_member(first, "where", record.location);
        io::append_member(first, "message", record.message);
        first += '}';
    }
    std::string failed = "{";
    io::append_member(failed, "count", stats.failed.count);
    io::append_member(failed, "first", io::JsonText{first += ']'});
    std::string text = "{";
    io::append_member(text, "shards", io::JsonText{shards += '}'});
    io::append_member(text, "complete", stats.is_complete);
    io::append_member(text, "records", stats.records);
    io::append_member(text, "digest", hex_of(stats.digest));
    io::append_member(text, "texts", stats.records - stats.failed.count);
    if (stats.sums.truncated_texts != 0)
        io::append_member(text, "truncated_texts", stats.sums.truncated_texts);
    io::append_member(text, "tokens", stats.sums.tokens);
    io::append_member(text, "failed", io::JsonText{failed += '}'});
    return text += '}';
}

std::string sums_text(const ScanStats& stats, std::size_t i) {
    const Bins& bins = head_statistics()[stats.statistics[i]].bins;
    std::string text = "{";
    const auto add = [&](const char* name, const std::string& values) {
        io::append_member(text, name, io::JsonText{values});
    };
    add("count", by_head(stats, i, [](std::string& to, const FixedSums& sums) {
            to += std::to_string(sums.count);
        }));
    for (const auto& [name, sum] :
         {std::pair("sum", &FixedSums::sum), {"squares", &FixedSums::squares}}) {
        const auto member = sum;
        add(name, by_head(stats, i, [&](std::string& to, const FixedSums& sums) {
                io::append_json_string(to, decimal_of(sums.*member));
            }));
    }
    add("variance",
        numbers_by_head(stats, i, [](const FixedSums& sums) { return sums.variance(); }));
    add("least",
        numbers_by_head(stats, i, [](const FixedSums& sums) { return from_fixed(sums.least); }));
    add("most",
        numbers_by_head(stats, i, [](const FixedSums& sums) { return from_fixed(sums.most); }));
    io::append_member(text, "bins", bins.is_logarithmic ? "half octaves" : "linear");
    add("histogram", by_head(stats, i, [](std::string& to, const FixedSums& sums) {
            io::append_json(to, sums.bins);
        }));
    return text += '}';
}

}  // namespace

void FailedRecords::add(FailedRecord record) {
    ++count;
    const auto after = std::ranges::upper_bound(first, record.number, {}, &FailedRecord::number);
    first.insert(after, std::move(record));
    if (first.size() > max_listed) first.pop_back();
}

void FailedRecords::add(const FailedRecords& others) {
    for (const FailedRecord& record : others.first) add(record);
    count += others.count - others.first.size();
}

std::string head_location(const LayerKey& layer, std::size_t head) {
    return layer.first + (layer.first.empty() ? "layer " : " layer ") +
           std::to_string(layer.second) + ", head " + std::to_string(head);
}

void TextSums::add(const TextSums& other, const std::vector<std::size_t>& statistics,
                   const std::string& location) {
    if (__builtin_add_overflow(tokens, other.tokens, &tokens))
        throw Error(ErrorKind::input, location, "more than 2^64 tokens; expected fewer");
    truncated_texts += other.truncated_texts;
    for (const auto& [key, from] : other.layers) {
        const auto [at, is_new] = layers.try_emplace(key, from);
        if (is_new) continue;
        LayerSums& to = at->second;
        if (to.heads != from.heads)
            throw Error(ErrorKind::input, location, head_location(key, 0), ": ", from.heads,
                        " heads, where other texts have ", to.heads, "; expected one number");
        for (std::size_t i = 0; i < to.sums.size(); ++i)
            if (!to.sums[i].add(from.sums[i]))
                throw Error(ErrorKind::input, location,
                            head_statistics()[statistics[i % statistics.size()]].name, " of ",
                            head_location(key, i / statistics.size()),
                            " exceeds the range of its sums; expected fewer texts in one "
                            "file");
    }
}

std::string stats_text(const ScanStats& stats) {
    std::string text = "{";
    io::append_member(text, "schema", schemas::stats);
    io::append_member(text, "mode", std::string_view("scan"));
    io::append_member(text, "config", io::JsonText{stats.config});
    io::append_member(text, "corpus", io::JsonText{corpus_text(stats)});
    std::string sums = "{";
    io::append_member(sums, "layers", io::JsonText{layers_text(stats)});
    for (std::size_t i = 0; i < stats.statistics.size(); ++i) {
        const std::string_view name = head_statistics()[stats.statistics[i]].name;
        if (!stats.sums.layers.empty())
            io::append_member(text, name,
                              io::JsonText{numbers_by_head(
                                  stats, i, [](const FixedSums& of) { return of.mean(); })});
        io::append_member(sums, name, io::JsonText{sums_text(stats, i)});
    }
    io::append_member(text, "sums", io::JsonText{sums += '}'});
    return text + "}\n";
}

}  // namespace attn::cli
