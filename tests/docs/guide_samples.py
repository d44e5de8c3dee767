"""For each check of the guide: a text that its example might print, and changes after which the check has to fail.

Read by guide_shows_test.py alone. The figures are made up.
"""

_CASES = {}


def sample(name, text, *spoilers):
    _CASES[name] = (text.lstrip("\n"), spoilers)


sample("versions", """
Python 3.12.3, PyTorch 9.9.0, CUDA 13.0
torch.cuda.memory_profiler      not there
torch.cuda.memory_utils         not there
torch.cuda.memory_stats         there
""", ("utils         not there", "utils         there"), ("memory_stats         there", "memory_stats         not there"), ("PyTorch", "Torch"))

sample("watch", """
MiB                    allocated reserved    peak nvidia-smi | gpucap driver
one number                     0        2       0        612 |    612    610
a model                       64       82      64        692 |    692    610
one step                     100      402     300       1222 |   1222    800
grads and cache gone          64       82     300        902 |    902    800
a peak of 6 GiB that lasted 17 ms
nvidia-smi, sampled every second: 1500, 1500, 1502, 1500 MiB
gpucap-top: peak 7000 MiB
""", ("1222 |   1222", "1230 |   1222"), ("1222    800", "1222    400"), ("1502", "7000"), ("peak 7000", "peak 6900"), ("17 ms", "900 ms"),
       ("64       82     300", "84       82     300"), ("a model", "model"), ("       82     300        902 |    902    800", "      402     300       1222 |   1222    800"))

sample("limit", """
== set_per_process_memory_fraction(0.5), and no cap
PyTorch sees a card of 137438953472 B
cudaMalloc of 4 GiB by another library: result 0
PyTorch got 68719476736 B
NVML says that the process holds 70236 MiB
== a cap of 50%
PyTorch sees a card of 68719476736 B
cudaMalloc of 4 GiB by another library: result 0
PyTorch got 63000000000 B
NVML says that the process holds 65526 MiB
""", ("result 0", "result 2"), ("got 68719476736", "got 68719476737"), ("70236", "70226"), ("65526", "65500"))

sample("live_limit", """
$ gpucap set -p 7 --limit 6G
$ gpucap set -p 7 --limit 2G
== what the program printed
pid 7
5 GiB refused; the card has 4.0 GiB, 0.0 GiB are held
5 GiB granted; the card has 6.0 GiB, 5.0 GiB are held
0.25 GiB refused; the card has 2.0 GiB, 5.0 GiB are held
""", ("5 GiB refused", "5 GiB granted"), ("has 6.0", "has 4.0"), ("2.0 GiB, 5.0", "2.0 GiB, 1.5"), ("0.25 GiB refused", "0.25 GiB granted"))

sample("allocators", """
default (backend native)
  peak in tensors 2500 MiB, peak reserved 3400 MiB, retries 9, out of memory 0
expandable_segments:True (backend native)
  peak in tensors 2500 MiB, peak reserved 2600 MiB, retries 0, out of memory 0
backend:cudaMallocAsync (backend cudaMallocAsync)
  peak in tensors 2500 MiB, peak reserved 2900 MiB, retries 0, out of memory 0
max_split_size_mb:128 (backend native)
  peak in tensors 2500 MiB, peak reserved 3400 MiB, retries 9, out of memory 0
garbage_collection_threshold:0.6 (backend native)
  peak in tensors 2400 MiB, peak reserved 3100 MiB, retries 2, out of memory 1
""", ("retries 9", "retries 0"), ("(backend cudaMallocAsync)", "(backend native)"), ("2500 MiB", "2600 MiB"), ("2900", "2400"), ("3100", "4100"),
       ("max_split_size_mb:128", "default"))

sample("savings", """
neither: peak 8000 MiB without a cap; runs under 7616 MiB, not under 7552 MiB
--amp: peak 6000 MiB without a cap; runs under 5504 MiB, not under 5440 MiB
--checkpoint: peak 5000 MiB without a cap; runs under 4992 MiB, not under 4928 MiB
--checkpoint --amp: peak 4500 MiB without a cap; runs under 4480 MiB, not under 4416 MiB
""", ("5504 MiB, not under 5440", "7616 MiB, not under 7552"), ("peak 5000", "peak 8000"), ("4416", "4352"), ("peak 4500", "peak 4300"), ("--amp:", "--fp16:"))

sample("full_training", """
NVIDIA Something, 89.6 GiB
epoch 1: loss 1.000, right 60.0 %; peak in tensors 300 MiB, reserved 400 MiB, used of the card 980 MiB
epoch 2: loss 0.100, right 95.0 %; peak in tensors 300 MiB, reserved 400 MiB, used of the card 980 MiB
epoch 3: loss 0.010, right 99.0 %; peak in tensors 300 MiB, reserved 400 MiB, used of the card 990 MiB
saved, loaded again, right 99.0 %
""", ("89.6", "128.0"), ("99.0 %; peak", "80.0 %; peak"), ("again, right 99.0", "again, right 10.0"), ("400 MiB, used of the card 980", "400 MiB, used of the card 380"),
       ("card 990", "card 1010"), ("epoch 2", "epoch two"))

for _name in ("data_parallel", "distributed"):
    sample(_name, """
card 0 of 6.0 GiB: loss 0.1000, peak in tensors 500 MiB, reserved 600 MiB, used 1500 MiB
card 1 of 4.0 GiB: loss 0.1000, peak in tensors 400 MiB, reserved 500 MiB, used 1400 MiB
""", ("of 4.0", "of 6.0"), ("used 1500", "used 2100"), ("reserved 500 MiB, used 1400", "reserved 500 MiB, used 400"), ("card 1", "card 0"))

sample("freeing", """
pid 7
two tensors of 1 GiB                           allocated  2048  reserved  2048  used  2566 MiB
del a, which has a second name                 allocated  2048  reserved  2048  used  2566 MiB
del same, its last name                        allocated  1024  reserved  2048  used  2566 MiB
b = None                                       allocated     0  reserved  2048  used  2566 MiB
empty_cache()                                  allocated     0  reserved     0  used   518 MiB
64 MiB cut from a cached GiB, empty_cache()    allocated    64  reserved  1024  used  1542 MiB
del small, empty_cache()                       allocated     0  reserved     0  used   518 MiB
64 MiB taken and freed: 3.0 us from the cache, 300.0 us with empty_cache() each time
$ gpucap-top events -p 7    # what PyTorch took and gave back first
t  7  GPU 0  charge   cudaMalloc > cuMemAlloc_v2      1.00 GiB  CUDA_SUCCESS  0x1  used 1.51 GiB
t  7  GPU 0  charge   cudaMalloc > cuMemAlloc_v2      1.00 GiB  CUDA_SUCCESS  0x2  used 2.51 GiB
t  7  GPU 0  release  cudaFree > cuMemFree_v2         1.00 GiB  CUDA_SUCCESS  0x1  used 1.51 GiB
t  7  GPU 0  release  cudaFree > cuMemFree_v2         1.00 GiB  CUDA_SUCCESS  0x2  used 518 MiB
t  7  GPU 0  charge   cudaMalloc > cuMemAlloc_v2      1.00 GiB  CUDA_SUCCESS  0x1  used 1.51 GiB
t  7  GPU 0  release  cudaFree > cuMemFree_v2         1.00 GiB  CUDA_SUCCESS  0x1  used 518 MiB
""", ("allocated    64", "allocated  1024"), ("reserved  2048  used  2566 MiB\nempty", "reserved  1024  used  2566 MiB\nempty"),
       ("reserved     0  used   518", "reserved     0  used  2566"), ("300.0", "5.0"), (" release  ", " driver  "), ("1.00 GiB  CUDA_SUCCESS", "64.0 MiB  CUDA_SUCCESS"))

sample("out_of_memory", """
== default
gpucap: refused cudaMalloc (cuMemAlloc_v2) of 4.00 GiB on GPU 0
batch 262144: OutOfMemoryError; 'CUDA out of memory' in its text: yes
batch 131072: OutOfMemoryError; 'CUDA out of memory' in its text: yes
batch  65536: 10 steps, loss 0.900
== expandable_segments:True
gpucap: refused cuMemCreate of 20.0 MiB on GPU 0
batch 131072: OutOfMemoryError; 'CUDA out of memory' in its text: yes
batch  65536: 10 steps, loss 0.900
== backend:cudaMallocAsync
gpucap: refused cudaMallocAsync (cuMemAllocAsync) of 4.00 GiB on GPU 0
batch 131072: OutOfMemoryError; 'CUDA out of memory' in its text: no
batch  65536: 10 steps, loss 0.900
""", ("text: no", "text: yes"), ("text: yes", "text: no"), ("OutOfMemoryError", "AcceleratorError"), ("65536: 10", "32768: 10"),
       ("gpucap: refused cuMemCreate", "gpucap: took cuMemCreate"), ("== expandable_segments:True\n", ""))

sample("fragmentation", """
== default
pid 7
gpucap: refused cudaMalloc (cuMemAlloc_v2) of 1.50 GiB on GPU 0
tensors 192 MiB; free in the cache 2880 MiB, free on the card 506 MiB
1536 MiB: out of memory. PyTorch says: Of the allocated memory much is reserved by PyTorch but unallocated
$ gpucap-top events -p 7    # what was charged and refused
t  7  GPU 0  charge   cudaMalloc > cuMemAlloc_v2      1.00 GiB  CUDA_SUCCESS  0x1  used 1.51 GiB
t  7  GPU 0  refuse   cudaMalloc > cuMemAlloc_v2      1.50 GiB  CUDA_ERROR_OUT_OF_MEMORY  0x0  used 3.51 GiB
== expandable segments
tensors 192 MiB; free in the cache 2880 MiB, free on the card 506 MiB
1536 MiB: granted; reserved is now 1740 MiB
""", ("1536 MiB: granted", "1536 MiB: out of memory"), ("1536 MiB: out of memory", "1536 MiB: granted"), ("cache 2880", "cache 880"), ("card 506", "card 1600"),
       (" refuse ", " charge "), ("gpucap: refused", "gpucap: did"))

sample("sharing", """
== no cap
10:00:00 first: starts, sees a card of 128.0 GiB, wants 76.8 GiB
10:00:00 second: starts, sees a card of 128.0 GiB, wants 76.8 GiB
10:00:02 second: OUT OF MEMORY with 60.0 GiB
10:00:05 first: done with 76.8 GiB
exit status: first 0, second 1
== a cap each
10:00:05 first: done with 34.0 GiB
10:00:05 second: done with 34.0 GiB
exit status: first 0, second 0
== a group
10:00:09 first: OUT OF MEMORY with 5.5 GiB
10:00:11 first: done with 5.0 GiB
10:00:11 second: done with 5.5 GiB
exit status: first 0, second 0
== wait
10:00:15 first: done with 7.0 GiB
10:00:20 second: done with 7.0 GiB
exit status: first 0, second 0
== free
10:00:25 first: starts, sees a card of 128.0 GiB, wants 123.0 GiB
10:00:31 first: done with 123.0 GiB
10:00:33 second: starts, sees a card of 8.0 GiB, wants 6.0 GiB
10:00:38 second: done with 6.0 GiB
""", ("first 0, second 1", "first 0, second 0"), ("exit status: first 0, second 0", "exit status: first 1, second 0"), ("first: OUT OF MEMORY with 5.5", "first: makes do with 5.5"),
       ("second: done with 5.5", "second: done with 7.1"), ("10:00:20", "10:00:15"), ("second: starts, sees a card of 8.0", "second: sees a card of 8.0"),
       ("10:00:31 first: done with 123.0 GiB\n10:00:33 second: starts, sees a card of 8.0 GiB, wants 6.0 GiB\n",
        "10:00:33 second: starts, sees a card of 8.0 GiB, wants 6.0 GiB\n10:00:34 first: done with 123.0 GiB\n"), ("== wait\n", ""))

_HEAD = "PID  USER  GPU      USED       CAP   %      PEAK   DRIVER  LIVE  REFUSED  AGE  COMMAND\n"
sample("leak", "\n".join("$ gpucap-top --once    # look %d\n%s  7  root    0   %d MiB  4.00 GiB  20   900 MiB  612 MiB    %d        0   8s  python3 leak.py --leak\n"
                         "  8  root    0   700 MiB  4.00 GiB  17   700 MiB  612 MiB     5        0   8s  python3 leak.py"
                         % (look, _HEAD, 800 + 100 * look, 10 + 5 * look) for look in (1, 2, 3)) + "\nleak.py: 300 steps, 50 MiB in tensors\n",
       ("  612 MiB    20 ", "  612 MiB    15 "), ("1100 MiB", "1000 MiB"), ("3\n" + _HEAD, "3\n"), ("# look 2", "# look 2\n$ gpucap-top --once"))
_text, _spoilers = _CASES["leak"]
_last = _text.rindex("     5        0")
_CASES["leak"] = (_text, _spoilers + ((_text[_last - 60:], _text[_last - 60:].replace("     5        0", "     6        0")),))

sample("jupyter_kernel", """
the card has 4.0 GiB
        ok
OutOfMemoryError: CUDA out of memory
        ok
and on: 499500
        ok
""", ("4.0", "128.0"), ("OutOfMemoryError: ", "granted "), ("499500\n        ok", "499500\n        error"), ("499500", "499501"))

sample("other_jax", """
JAX 9.9 may use 2800 MiB
after 2752 MiB: RESOURCE_EXHAUSTED: Out of memory while trying to allocate
and goes on: 499500
""", ("use 2800", "use 96000"), ("after 2752", "after 2880"), ("RESOURCE_EXHAUSTED: Out of memory", "INTERNAL"), ("499500", "0"), ("use 2800", "use 3800"))

sample("other_cupy", """
CuPy 99.0
after 3520 MiB: Out of memory allocating 67,108,864 bytes
full               in arrays 3520  in the pool 3520  used 4038 of 4096 MiB
arrays deleted     in arrays    0  in the pool 3520  used 4038 of 4096 MiB
free_all_blocks()  in arrays    0  in the pool    0  used  518 of 4096 MiB
""", ("of 4096", "of 131072"), ("arrays    0  in the pool 3520", "arrays    0  in the pool 3000"), ("pool    0", "pool 3520"), ("used  518", "used  900"),
       ("Out of memory", "cudaErrorUnknown"))

SAMPLES = _CASES
