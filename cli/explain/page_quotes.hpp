// The numbers and sources that descriptions of score steps and masks quote on a page.
#pragma once

#include <string>
#include <string_view>

#include "cli/explain/explanation.hpp"

namespace attn::cli {

class PageQuotes {
public:
    explicit PageQuotes(const Explanation& e) : e_(e) {}

    std::string number(double value) const { return e_.format.number(value); }
    std::string setting(double value) const { return setting_text(value); }
    std::string source(std::string_view key) const { return e_.source_of(std::string(key)); }
    std::string operand_source(std::string_view key) const {
        return e_.operand_source(std::string(key));
    }
    std::string additive_mask_source(std::size_t index) const {
        if (!e_.source.layer.empty()) return "the layer's bias";
        return e_.operand_source(e_.source.additive_masks[index]);
    }
    bool is_given(std::string_view key) const { return e_.request.has(std::string(key)); }
    bool has_projections() const { return e_.settings().init != Init::none; }
    std::string command() const { return e_.command(); }
    std::string position() const { return e_.position_words(); }

private:
    const Explanation& e_;
};

}  // namespace attn::cli
