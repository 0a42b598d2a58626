"""Timings inside a Python that has PyTorch or ONNX Runtime, where peers.py runs it with a job
as JSON. A job without a method asks which ones there are."""
import json
import statistics
import sys
import time

TOLERANCE, TOLERANCE_OF_BFLOAT16 = 1e-4, 1e-2


def torch_job(job):
    import numpy
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    kernels = {"fused kernel": SDPBackend.FLASH_ATTENTION, "math kernel": SDPBackend.MATH,
               "fused kernel, bfloat16": SDPBackend.FLASH_ATTENTION}
    if "method" not in job:
        return dict(version=".".join(torch.__version__.split(".")[:2]), methods=list(kernels))
    torch.set_num_threads(job["threads"])
    operands = random_operands(job)
    is_short = job["method"].endswith("bfloat16")
    q, k, v = (torch.from_numpy(x[None]).to(torch.bfloat16 if is_short else torch.float32)
               for x in operands)

    def compute():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=job["causal"])

    with torch.set_grad_enabled(job["backward"]), sdpa_kernel(kernels[job["method"]]):
        if not job["backward"]:
            return timed(job, operands, compute, lambda answer: numpy.asarray(answer.float())[0],
                         TOLERANCE_OF_BFLOAT16 if is_short else TOLERANCE)
        for x in (q, k, v):
            x.requires_grad_()
        out = compute()
        grad = torch.from_numpy(numpy.random.default_rng(2).random(out.shape, numpy.float32)).to(out.dtype)

        def differentiate():
            return torch.autograd.grad(out, (q, k, v), grad, retain_graph=True)

        return timed(job, operands, differentiate, lambda answer: out.detach().numpy()[0])


# operator: its domain, and where the heads are: rows (1, tokens, heads * width) or heads
# (1, heads, tokens, width)
ONNX_OPERATORS = {
    "MultiHeadAttention": ("com.microsoft", "rows"),
    "Attention": ("", "heads"),
    "GroupQueryAttention": ("com.microsoft", "rows"),
}


def onnxruntime_job(job):
    import numpy
    import onnx  # noqa: F401
    import onnxruntime
    if "method" not in job:
        return dict(version=".".join(onnxruntime.__version__.split(".")[:2]),
                    methods=list(ONNX_OPERATORS))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = job["threads"], 1
    session = onnxruntime.InferenceSession(onnx_model(job), options, ["CPUExecutionProvider"])
    operands = random_operands(job)
    heads, rows = job["heads"], ONNX_OPERATORS[job["method"]][1] == "rows"

    def laid_out(x):
        x = x.transpose(1, 0, 2).reshape(x.shape[1], -1) if rows else x
        return numpy.ascontiguousarray(x[None])

    def by_head(answer):
        x = answer[0][0]
        return x.reshape(len(x), heads, -1).transpose(1, 0, 2) if rows else x

    feeds = dict(zip("qkv", map(laid_out, operands)))
    if job["method"] == "GroupQueryAttention":  # counts its keys
        feeds["last"] = numpy.array([job["keys"] - 1], numpy.int32)
        feeds["total"] = numpy.array([job["keys"]], numpy.int32)
    return timed(job, operands, lambda: session.run(["out"], feeds), by_head)


def onnx_model(job):
    from onnx import TensorProto, helper
    operator, heads, causal = job["method"], job["heads"], int(job["causal"])
    inputs = {name: (TensorProto.FLOAT, [1, None, None]) for name in "qkv"}
    names, outputs = list("qkv"), ["out"]
    if operator == "Attention":
        attributes = dict(is_causal=causal)
        inputs = {name: (TensorProto.FLOAT, [1, heads, None, None]) for name in "qkv"}
    elif operator == "MultiHeadAttention":
        attributes = dict(num_heads=heads, unidirectional=causal)
    else:
        attributes = dict(num_heads=heads, kv_num_heads=heads)
        inputs.update(last=(TensorProto.INT32, [1]), total=(TensorProto.INT32, [1]))
        names, outputs = [*"qkv", "", "", "last", "total"], ["out", "", ""]
    node = helper.make_node(operator, names, outputs, domain=ONNX_OPERATORS[operator][0],
                            **attributes)
    graph = helper.make_graph(
        [node], "attention",
        [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    # Not checked by onnx, which may be older than the operator; ONNX Runtime checks it.
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def random_operands(job):
    """q, k and v, each (heads, tokens, width)."""
    import numpy
    random = numpy.random.default_rng(1)
    return [random.uniform(-1, 1, (job["heads"], job[tokens], job["width"])).astype("float32")
            for tokens in ("queries", "keys", "keys")]


def timed(job, operands, compute, by_head, tolerance=TOLERANCE):
    """Median seconds of `compute`; its answer, (heads, queries, width) by `by_head`, is checked."""
    error = worst_error(job, operands, by_head(compute()))
    if not error < tolerance:
        raise ArithmeticError(f"its answer is wrong by {error}")

    def times(seconds):
        taken = []
        while sum(taken) < seconds or not taken:
            start = time.perf_counter()
            compute()
            taken.append(time.perf_counter() - start)
        return taken

    times(job["seconds"] / 4)  # warm-up
    return dict(seconds=statistics.median(times(job["seconds"])))


def worst_error(job, operands, answer):
    """The largest error in a few rows of the first and the last head."""
    import numpy
    worst = 0.0
    for head in (0, job["heads"] - 1):
        q, k, v = (x[head].astype("float64") for x in operands)
        for t in (0, job["queries"] // 3, job["queries"] - 1):
            visible = t + 1 if job["causal"] else job["keys"]
            weights = numpy.exp(k[:visible] @ q[t] / job["width"] ** 0.5)
            row = weights / weights.sum() @ v[:visible]
            worst = max(worst, float(abs(row - answer[head, t]).max()))
    return worst


asked = json.loads(sys.argv[1])
print(json.dumps({"torch": torch_job, "onnxruntime": onnxruntime_job}[asked["library"]](asked)))
