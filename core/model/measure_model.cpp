// What a run of a model costs, by a dry run.

#include "core/base/memory.hpp"
#include "core/model/model.hpp"

namespace attn {

ModelCost measure_model(Compute compute, const ModelSpec& model, const ModelInput& input,
                        const ModelRequest& request, const Decoder* decoder, NumberType dtype) {
    ModelCost cost;
    compute.flops = &cost.flops;
    const auto count = [&](const NamedArray& array) {
        cost.numbers +=
            std::visit([](const auto& x) { return static_cast<double>(x.size()); }, array.values);
    };
    const auto counted = [&](ModelRequest asked) {
        if (asked.take) asked.take = count;
        return asked;
    };
    const ModelRequest own = counted(request);
    MemoryMeter meter(MemoryMeter::Run::dry);
    ModelResult result;
    if (decoder == nullptr) {
        result = run_model(compute, model, input, own, dtype);
    } else {
        const ModelRequest of_decoder = counted(decoder->request);
        result = run_encoder_decoder(compute, model, input, own,
                                     {decoder->model, decoder->ids, of_decoder}, dtype);
    }
    cost.memory = meter.peak();
    cost.tokens = result.tokens;
    std::for_each(result.arrays.begin(), result.arrays.end(), count);
    return cost;
}

}  // namespace attn
