#!/usr/bin/env python3
"""squatter.py FILE: listens, as a user without rights, on as many ports of 127.0.0.1 as it can, those first that the system
gives to programs that ask for any. It takes each connection, keeps it, and answers nothing. At SIGTERM it writes what came
into FILE: ports, connections, bytes, the most bytes of one connection, and texts of version 1 of the protocol that had a
token. For joining.sh."""
import os, random, resource, select, signal, socket, sys

most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
out = open(sys.argv[1], "w")
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)
first, last = map(int, open("/proc/sys/net/ipv4/ip_local_port_range").read().split())
ports = list(range(first, last + 1))
random.Random(1).shuffle(ports)
listening, taken, ended = {}, {}, []
poll = select.epoll()
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
for port in ports:
    if len(listening) > most - 500:
        break
    s = socket.socket()
    try:
        s.bind(("127.0.0.1", port))
        s.listen(64)
    except OSError:
        s.close()
        continue
    s.setblocking(False)
    listening[s.fileno()] = s
    poll.register(s.fileno(), select.EPOLLIN)
print("ready", flush=True)
connections, came = 0, []
while not ended:
    for fd, _ in poll.poll(0.1):
        if fd in listening:
            try:
                c, _ = listening[fd].accept()
            except OSError:
                continue
            c.setblocking(False)
            taken[c.fileno()] = (c, bytearray())
            poll.register(c.fileno(), select.EPOLLIN)
            connections += 1
            continue
        c, text = taken[fd]
        try:
            got = c.recv(65536)
        except OSError:
            got = b""
        text += got
        if not got:
            poll.unregister(fd)
            came.append(bytes(text))
            del taken[fd]
            c.close()
came += [bytes(text) for _, text in taken.values()]
tokens = sum(text[:4] == b"THLO" and text[4] == 1 and len(text) > 40 for text in came)
print(len(listening), connections, sum(map(len, came)), max(map(len, came), default=0), tokens, file=out)
