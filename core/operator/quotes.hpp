// Values quoted in the explanation of a computation; see score_steps.hpp and mask_rows.hpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attn {

/// How the page writes numbers, and the sources of settings.
class Quotes {
public:
    Quotes() = default;
    Quotes(const Quotes&) = delete;
    Quotes& operator=(const Quotes&) = delete;
    virtual ~Quotes() = default;

    virtual std::string number(double value) const = 0;   ///< with the page's digits
    virtual std::string setting(double value) const = 0;  ///< as it was given
    /// "--heads 2", "model/config.json: n_head 2" or "the default of --heads".
    virtual std::string source(std::string_view key) const = 0;
    virtual std::string operand_source(std::string_view key) const = 0;  ///< "--mask mask.json"
    virtual std::string additive_mask_source(std::size_t index) const = 0;
    virtual bool is_given(std::string_view key) const = 0;
    virtual bool has_projections() const = 0;
    virtual std::string command() const = 0;   ///< "attn causal"
    virtual std::string position() const = 0;  ///< "p = 3, the query's position"
};

}  // namespace attn
