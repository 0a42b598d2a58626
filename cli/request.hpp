// One request: what argv and a request document ask for, before any array is read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/settings.hpp"
#include "io/csv.hpp"
#include "io/writers.hpp"

namespace attn::cli {

enum class InputFormat { automatic, json, csv };
inline constexpr Names<InputFormat, 3> input_format_names{
    {{InputFormat::automatic, "auto"}, {InputFormat::json, "json"}, {InputFormat::csv, "csv"}}};

struct Request {
    Settings settings;

    std::string input;  ///< a path, "-", or empty where standard input or nothing is read
    InputFormat input_format = InputFormat::automatic;
    io::CsvStyle csv;
    std::optional<std::string> example;
    std::optional<std::string> text;
    std::optional<std::uint64_t> vocab_size, embed_dim;
    std::optional<Seed> embed_seed;

    /// Paths of the operands that have a file of their own, by key: query, mask, context, ...
    std::map<std::string, std::string> operand_files;

    std::string output = "-";
    io::Format format = io::Format::json;
    std::optional<std::uint64_t> precision;
    io::Nonfinite nonfinite = io::Nonfinite::string;
    bool pretty = false;

    std::optional<std::uint64_t> threads;  ///< empty: all processors

    nlohmann::json id;                ///< null where there is none
    std::vector<std::string> tokens;  ///< one label a token, or empty

    /// Where each setting was given, by key: "--heads 5", or "request.json:1:9: heads 5".
    std::map<std::string, std::string> places;

    bool has(const std::string& setting) const { return places.contains(setting); }
    bool has_file(const std::string& operand) const { return operand_files.contains(operand); }
};

/// What an error calls the setting or operand `key`: its place, or the flag that would set it.
std::string place_of(const Request& request, const std::string& key);

}  // namespace attn::cli
