"""How do I cap a Jupyter notebook?

Run: python3 examples/pytorch/jupyter_kernel.py
Look at: the size of the card in the notebook, and that a cell that asks for too much fails while the notebook lives on.
This script is the notebook: it starts the kernel of examples/jupyter/kernel.json as Jupyter would, and runs three cells.
"""
import pathlib
import shutil
import tempfile

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

CELLS = ["import torch; print('the card has %.1f GiB' % (torch.cuda.mem_get_info()[1] / 2**30))",
         "try:\n"
         "    torch.empty(5 * 2**30, dtype=torch.uint8, device='cuda')\n"
         "except torch.OutOfMemoryError as error:\n"
         "    print('OutOfMemoryError:', str(error).split('. ')[0])",
         "print('and on: %d' % torch.arange(1000, device='cuda').sum())"]

with tempfile.TemporaryDirectory() as folder:
    spec = pathlib.Path(folder, "gpucap-4g")
    spec.mkdir()
    shutil.copy(pathlib.Path(__file__).parent.parent / "jupyter" / "kernel.json", spec)
    manager = KernelManager(kernel_name="gpucap-4g", kernel_spec_manager=KernelSpecManager(kernel_dirs=[folder]))
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        for number, cell in enumerate(CELLS, 1):
            print("In [%d]: %s" % (number, cell.replace("\n", "\n" + " " * 8)), flush=True)
            reply = client.execute_interactive(cell, timeout=120)
            print("        %s" % reply["content"]["status"], flush=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)
