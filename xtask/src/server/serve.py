"""llama.cpp's own server with one model on a free port of the loopback interface, until standard input ends.

Arguments: the folder of the package xllamacpp, the model's file, a chat template (empty: the one of the model), the key. Prints
the address.
"""

import sys

folder, model, template, key = sys.argv[1:]
sys.path.insert(0, folder)

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = model
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.api_keys = [key]
parameters.n_ctx = 4096
parameters.n_parallel = 1
parameters.use_jinja = True
if template:
    with open(template, encoding="utf-8") as file:
        parameters.chat_template = file.read()

server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
