// Collects the arrays that were asked for, in the rank of the question.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/layer/result.hpp"

namespace attn {

class Recorder {
public:
    /// `batched` and `with_heads` say which leading axes the answer shows; `average_heads` makes
    /// attention_weights their mean over the heads.
    Recorder(std::vector<std::string> wanted, bool batched, bool with_heads,
             bool average_heads = false)
        : wanted_(std::move(wanted)), batched_(batched), with_heads_(with_heads),
          average_heads_(average_heads) {}

    bool wants(std::string_view name) const;

    /// Keeps (batch, heads, rows, columns), less the axes that the question does not have.
    template <class T>
    void keep(std::string_view name, const Tensor4<T>& values, std::string_view rows,
              std::string_view columns);

    /// Room for what `keep` would be given, to be filled by the caller; null where it is not
    /// wanted.
    template <class T>
    T* make_room(std::string_view name, const std::array<std::size_t, 4>& shape,
                 std::string_view rows, std::string_view columns);

    /// Keeps an array whose shape is already the one to show.
    void keep_as_is(std::string_view name, AnyArray values, std::vector<std::string_view> axes);

    /// Keeps (batch, heads, q_len, kv_len) that is still to be computed, less the axes that the
    /// question does not have.
    template <class T>
    void keep_stream(std::string_view name, RowStream<T> stream);

    /// What was kept, in the order of `array_names`.
    std::vector<NamedArray> take();

private:
    bool averages(std::string_view name) const {
        return average_heads_ && name == "attention_weights";
    }

    std::vector<std::string> wanted_;
    bool batched_, with_heads_, average_heads_;
    std::vector<NamedArray> kept_;
};

}  // namespace attn
