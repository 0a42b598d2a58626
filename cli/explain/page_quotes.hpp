// The numbers and sources that descriptions of score steps and masks quote on a page.
#pragma once

#include <string>
#include <string_view>

#include "cli/explain/walk.hpp"

namespace attn::cli {

class PageQuotes {
public:
    explicit PageQuotes(const Walk& walk) : walk_(walk) {}

    std::string number(double value) const { return walk_.words.number(value); }
    std::string setting(double value) const { return setting_text(value); }
    std::string source(std::string_view key) const { return walk_.source_of(std::string(key)); }
    std::string operand_source(std::string_view key) const {
        return walk_.operand_source(std::string(key));
    }
    std::string additive_mask_source(std::size_t index) const {
        if (walk_.is_result()) return "--" + walk_.source.additive_masks[index];
        return walk_.operand_source(walk_.source.additive_masks[index]);
    }
    bool is_given(std::string_view key) const { return walk_.request.has(std::string(key)); }
    bool has_projections() const { return walk_.settings().init != Init::none; }
    std::string command() const { return walk_.command(); }
    std::string position() const { return walk_.position_words(); }

private:
    const Walk& walk_;
};

}  // namespace attn::cli
