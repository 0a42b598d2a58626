// Requests for `attn batch`.
#pragma once

#include "tests/support/support.hpp"

namespace attn::test {

/// A record that can be answered, with more members.
std::string good(const std::string& members = "");

/// What the records below name, into a folder.
void make_operands(const std::string& folder);

/// Lines with their breaks: every mode, quick and slow records, inline numbers, files, a model's
/// weights, dropout, ids of every kind, blank lines, and records that fail in every way. With
/// another `first` ids are different too.
std::string mixed_requests(std::size_t lines, std::size_t first = 0);

/// So many quick records that succeed, with ids from `first` on.
std::string quick_requests(std::size_t lines, std::size_t first = 1);

}  // namespace attn::test
