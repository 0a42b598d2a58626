#include "cli/scan/stats_file.hpp"

#include "cli/request/digest.hpp"
#include "cli/request/schemas.hpp"
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
    io::append_member(shards, "of", stats.shards.of());
    io::append_member(shards, "held", stats.shards.held());
    std::string first = "[";
    for (const FailedRecord& record : stats.failed.first) {
        first += first.back() == '[' ? "{" : ",{";
        io::append_member(first, "record", record.number);
        io::append_member(first, "id", io::JsonText{record.id});
        io::append_member(first, "where", record.where);
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
    io::append_member(text, "tokens", stats.sums.tokens);
    io::append_member(text, "failed", io::JsonText{failed += '}'});
    return text += '}';
}

std::string sums_text(const ScanStats& stats, std::size_t i) {
    const Bins& bins = head_statistics()[stats.statistics[i]].bins;
    std::string text = "{";
    io::append_member(text, "count",
                      io::JsonText{by_head(stats, i, [](std::string& to, const FixedSums& sums) {
                          to += std::to_string(sums.count);
                      })});
    io::append_member(text, "sum",
                      io::JsonText{by_head(stats, i, [](std::string& to, const FixedSums& sums) {
                          io::append_json_string(to, decimal_of(sums.sum));
                      })});
    io::append_member(text, "squares",
                      io::JsonText{by_head(stats, i, [](std::string& to, const FixedSums& sums) {
                          io::append_json_string(to, decimal_of(sums.squares));
                      })});
    io::append_member(text, "variance",
                      io::JsonText{numbers_by_head(
                          stats, i, [](const FixedSums& sums) { return sums.variance(); })});
    io::append_member(text, "least",
                      io::JsonText{numbers_by_head(
                          stats, i, [](const FixedSums& sums) { return from_fixed(sums.least); })});
    io::append_member(text, "most",
                      io::JsonText{numbers_by_head(
                          stats, i, [](const FixedSums& sums) { return from_fixed(sums.most); })});
    io::append_member(text, "bins", bins.is_logarithmic ? "half octaves" : "linear");
    io::append_member(text, "histogram",
                      io::JsonText{by_head(stats, i, [](std::string& to, const FixedSums& sums) {
                          io::append_json(to, sums.bins);
                      })});
    return text += '}';
}

}  // namespace

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
