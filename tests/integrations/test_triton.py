"""`autotune` in the place of ``triton.autotune``, with a simulated Triton: no GPU and no package are needed."""

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from noregret.comparison.receipts import faults
from noregret.extra import MissingExtra
from noregret.integrations import triton as door


class OutOfResources(Exception):
    pass


class Config:
    """The part of triton.Config that is used."""

    def __init__(self, kwargs, num_warps=4, num_stages=3, pre_hook=None):
        self.kwargs, self.pre_hook = kwargs, pre_hook
        self._launch = {"num_warps": num_warps, "num_stages": num_stages}

    def all_kwargs(self):
        return {**self.kwargs, **self._launch}

    def __str__(self):
        return ", ".join(f"{name}: {value}" for name, value in self.all_kwargs().items())


class Gpu:
    """A clock that launches advance, with noise; the kernel's time is a function of its settings."""

    def __init__(self, seed=0):
        self.now, self.rng = 0.0, np.random.default_rng(seed)
        self.clears = 0

    def Event(self, enable_timing):
        event = SimpleNamespace(at=None)
        event.record = lambda: setattr(event, "at", self.now)
        event.elapsed_time = lambda end: end.at - event.at
        return event

    def synchronize(self):
        pass

    def get_device_name(self):
        return "a simulated GPU"


class Kernel:
    """A jitted kernel: compiled once per configuration, its launches take simulated time."""

    arg_names = ("x", "size", "BLOCK")
    cache_key = "source of version 1"

    def __init__(self, gpu, milliseconds):
        self.gpu, self.milliseconds, self.kernels, self.launches = gpu, milliseconds, {}, []
        self.__name__ = "kernel"

    def run(self, x, size, *, grid, warmup, **settings):
        self.launches.append(settings)
        took = self.milliseconds(size, **settings)
        if took is None:
            raise OutOfResources("shared memory")
        self.gpu.now += took * self.gpu.rng.lognormal(sigma=0.02)
        if hasattr(x, "value"):
            x.value += 1
        return self.kernels.setdefault(tuple(settings.items()), object())


class Tensor:
    dtype = "float32"

    def __init__(self, value=0):
        self.value = value

    def zero_(self):
        self.value = 0

    def clone(self):
        return Tensor(self.value)

    def copy_(self, other):
        self.value = other.value


def milliseconds(size, BLOCK, num_warps, num_stages):
    """The best block grows with the size; more than 8 warps do not fit with the largest blocks."""
    if BLOCK * num_warps > 2**16:
        return None
    best = np.log2(size) / 2
    return 0.1 * (1 + 0.1 * (np.log2(BLOCK) - best) ** 2 + 0.06 * (np.log2(num_warps) - 2) ** 2 + 0.02 * num_stages)


CONFIGS = [Config({"BLOCK": 2**i}, w, s) for i in range(7, 14) for w in (1, 2, 4, 8, 16) for s in (2, 3)]
FEW = CONFIGS[::5]
SIZE = 2**20


@pytest.fixture
def gpu(monkeypatch):
    gpu = Gpu()
    target = SimpleNamespace(get_current_target=lambda: "cuda:90", get_device_interface=lambda: gpu)
    target.get_empty_cache_for_benchmark = lambda: None
    target.clear_cache = lambda cache: setattr(gpu, "clears", gpu.clears + 1)
    modules = {
        "triton": {"__version__": "3.6.0", "Config": Config},
        "triton.runtime": {"driver": SimpleNamespace(active=target)},
        "triton.runtime.errors": {"OutOfResources": OutOfResources},
        "triton.compiler.errors": {"CompileTimeAssertionFailure": type("Failure", (Exception,), {})},
        "triton.testing": {"do_bench_cudagraph": lambda call, rep, quantiles: [bench(gpu, call)] * 3},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["triton"].runtime = sys.modules["triton.runtime"]
    return gpu


def bench(gpu, call):
    before = gpu.now
    call()
    return gpu.now - before


def tuned(gpu, tmp_path, configs=FEW, times=milliseconds, **options):
    return door.autotune(configs, ["size"], folder=tmp_path, **options)(Kernel(gpu, times))


def of(config, size=SIZE):
    return milliseconds(size, **config.all_kwargs())


def test_a_third_is_compiled_and_the_winner_is_nearly_the_best(gpu, tmp_path):
    kernel = tuned(gpu, tmp_path, CONFIGS)
    kernel[(1,)](Tensor(), SIZE)
    tried = {tuple(each.items()) for each in kernel.fn.launches}
    assert len(tried) == kernel.compiled <= len(CONFIGS) // 3
    assert of(kernel.best_config) <= 1.02 * min(of(each) for each in CONFIGS if of(each))
    assert gpu.clears > len(kernel.fn.launches)  # each launch begins with an empty cache
    before = len(kernel.fn.launches)
    kernel[(1,)](Tensor(), SIZE)
    assert len(kernel.fn.launches) == before + 1
    kernel[(1,)](Tensor(), 2**14)
    assert len(kernel.cache) == 2
    assert kernel.compiled <= len(CONFIGS) // 3 + len(CONFIGS) // 12  # what was compiled before costs launches only
    assert of(kernel.best_config, 2**14) <= 1.02 * min(of(each, 2**14) for each in CONFIGS if of(each))


@pytest.mark.parametrize(("faster", "won"), [(1.0, 0), (0.998, 0), (0.97, 1)])
def test_ties_go_to_the_known_configuration(gpu, tmp_path, faster, won):
    configs = [Config({"BLOCK": 128}), Config({"BLOCK": 256}), Config({"BLOCK": 512})]
    factors = {128: 1.0, 256: faster, 512: 1.5}
    kernel = tuned(gpu, tmp_path, configs, lambda size, BLOCK, **_: 0.1 * factors[BLOCK])
    kernel[(1,)](Tensor(), SIZE)
    assert kernel.best_config is configs[won]


def test_the_winner_is_kept_with_a_receipt_that_can_be_verified(gpu, tmp_path):
    kernel = tuned(gpu, tmp_path)
    kernel[(1,)](Tensor(), SIZE)
    (path,) = tmp_path.iterdir()
    found = json.loads(path.read_text())
    assert faults(found) == []
    assert str(kernel.best_config) in found["commands"]
    assert found["commands"][0] == str(CONFIGS[0])
    assert found["result"] == f"ms of kernel({SIZE}, 'float32') on a simulated GPU"

    again = tuned(gpu, tmp_path)
    again[(1,)](Tensor(), SIZE)
    assert again.best_config is kernel.best_config
    assert (again.compiled, len(again.fn.launches)) == (0, 1)

    found["comparison"]["runs"][0][1] *= 2
    path.write_text(json.dumps(found))
    damaged = tuned(gpu, tmp_path)
    damaged[(1,)](Tensor(), SIZE)
    assert damaged.compiled > 0


def test_a_changed_kernel_is_tuned_again_and_its_old_winner_is_the_known_one(gpu, tmp_path):
    kernel = tuned(gpu, tmp_path)
    kernel[(1,)](Tensor(), SIZE)
    changed = tuned(gpu, tmp_path)
    changed.fn.cache_key = "source of version 2"
    changed[(1,)](Tensor(), SIZE)
    newest = max(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert len(list(tmp_path.iterdir())) == 2
    assert changed.compiled > 0
    assert json.loads(newest.read_text())["commands"][0] == str(kernel.best_config)


@pytest.mark.parametrize(
    "options", [{"cache_results": False}, {"configs": [*CONFIGS[:5], Config({"BLOCK": 64}, pre_hook=print)]}]
)
def test_nothing_is_written_if_not_wanted_or_not_possible(gpu, tmp_path, options, capsys):
    kernel = tuned(gpu, tmp_path, **options)
    kernel[(1,)](Tensor(), SIZE)
    assert list(tmp_path.iterdir()) == []


def test_tensors_are_zeroed_and_restored(gpu, tmp_path):
    x = Tensor(7)
    kernel = tuned(gpu, tmp_path, reset_to_zero=["x"])
    kernel[(1,)](x, SIZE)
    assert x.value == 1
    x = Tensor(7)
    kernel = tuned(gpu, tmp_path, restore_value=["x"], cache_results=False)
    kernel[(1,)](x, SIZE)
    assert x.value == 8


def test_hooks_of_the_user_replace_these(gpu, tmp_path):
    before, after = [], []

    def pre(arguments, reset_only=False):
        before.append((arguments["size"], reset_only))

    def post(arguments, exception):
        after.append(exception)

    kernel = tuned(gpu, tmp_path, pre_hook=pre, post_hook=post, reset_to_zero=["x"])
    x = Tensor(7)
    kernel[(1,)](x, SIZE)
    assert x.value == 7 + len(kernel.fn.launches)
    assert before[-1] == (SIZE, True)
    assert len(before) == len(kernel.fn.launches) == len(after) + 1
    assert {type(each) for each in after} <= {type(None), OutOfResources}


def test_hooks_of_a_configuration_come_before_each_of_its_launches(gpu, tmp_path):
    calls = []
    configs = [Config({"BLOCK": 1024}, pre_hook=lambda arguments: calls.append(arguments["BLOCK"])), *CONFIGS[:3]]
    kernel = tuned(gpu, tmp_path, configs)
    kernel[(1,)](Tensor(), SIZE)
    assert kernel.best_config is configs[0]
    assert len(calls) == sum(each["BLOCK"] == 1024 for each in kernel.fn.launches)


def test_configurations_are_pruned_as_in_triton(gpu, tmp_path):
    seen = {}

    def early(configs, named, **kwargs):
        seen.update(named)
        return [config for config in configs if config.kwargs["BLOCK"] > 256]

    def model(x, size, grid, warmup, BLOCK, num_warps, num_stages):
        return BLOCK + num_warps + num_stages

    options = {"early_config_prune": early, "perf_model": model, "top_k": 3}
    kernel = tuned(gpu, tmp_path, CONFIGS, prune_configs_by=options)
    kernel[(1,)](Tensor(), SIZE)
    assert seen["size"] == SIZE
    assert {(each["BLOCK"], each["num_warps"] + each["num_stages"]) for each in kernel.fn.launches} == {
        (512, 3),
        (512, 4),
    }
    kernel = tuned(gpu, tmp_path, prune_configs_by={"perf_model": model, "top_k": 0.001})
    kernel[(1,)](Tensor(), SIZE)
    assert len(kernel.fn.launches) == 1  # one is left: nothing is to be chosen
    with pytest.raises(TypeError, match="top_k"):
        tuned(gpu, tmp_path, prune_configs_by={"perf_model": model, "top_k": 1.5})[(1,)](Tensor(), SIZE)
    with pytest.raises(ValueError, match="early_config_prune"):
        tuned(gpu, tmp_path, prune_configs_by={"early_config_prune": lambda *_, **__: []})[(1,)](Tensor(), SIZE)


@pytest.mark.parametrize("graph", [False, True])
def test_a_benchmark_of_the_user_or_a_graph_measures(gpu, tmp_path, graph):
    options = {"use_cuda_graph": True} if graph else {"do_bench": lambda call, quantiles: bench(gpu, call)}
    kernel = tuned(gpu, tmp_path, **options)
    kernel[(1,)](Tensor(), SIZE)
    assert gpu.clears == 0
    tried = [milliseconds(SIZE, **each) for each in kernel.fn.launches]
    assert of(kernel.best_config) <= 1.03 * min(each for each in tried if each)


def test_a_kernel_that_never_compiles_is_an_error(gpu, tmp_path):
    with pytest.raises(RuntimeError, match=r"none of the 3 .* compiles"):
        tuned(gpu, tmp_path, CONFIGS[:9], lambda size, **_: None)[(1,)](Tensor(), SIZE)


def test_other_errors_of_a_kernel_are_its_own(gpu, tmp_path):
    def wrong(size, **_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tuned(gpu, tmp_path, times=wrong)[(1,)](Tensor(), SIZE)


def test_settings_are_not_given_twice(gpu, tmp_path):
    with pytest.raises(ValueError, match="BLOCK must be chosen by autotune or be given"):
        tuned(gpu, tmp_path)[(1,)](Tensor(), SIZE, BLOCK=128)


def test_one_configuration_needs_no_gpu(gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["triton.runtime"], "driver", SimpleNamespace())
    kernel = tuned(gpu, tmp_path, CONFIGS[:1])
    kernel[(1,)](Tensor(), SIZE)
    assert kernel.compiled == 0


def test_without_a_gpu_the_error_says_so(gpu, tmp_path, monkeypatch):
    class Driver:
        @property
        def active(self):
            raise RuntimeError("0 active drivers ([]). There should only be one.")

    monkeypatch.setattr(sys.modules["triton.runtime"], "driver", Driver())
    with pytest.raises(RuntimeError, match=r"needs a GPU .* found none \(0 active drivers"):
        tuned(gpu, tmp_path)[(1,)](Tensor(), SIZE)


def test_without_triton_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(MissingExtra, match=r"this needs triton, of the extra noregret-tuner\[triton\]"):
        door.autotune(CONFIGS, ["size"])


def test_configurations_must_be_given(gpu):
    with pytest.raises(ValueError, match=r"at least one triton\.Config"):
        door.autotune([], ["size"])
