"""A tester built on udsoncan and can-isotp. Its bus is descriptor 3: every read and write is one frame of SocketCAN."""
import os, select, struct, sys
import isotp, udsoncan
from udsoncan.client import Client
from udsoncan.connections import PythonIsoTpConnection
from udsoncan.exceptions import NegativeResponseException
from udsoncan import services

LAYOUT = "=IB3x8s"  # struct can_frame

def receive(timeout):
    if not select.select([3], [], [], timeout)[0]:
        return None
    number, length, data = struct.unpack(LAYOUT, os.read(3, 17)[:16])
    return isotp.CanMessage(arbitration_id=number, dlc=length, data=data[:length])

def send(message):
    os.write(3, struct.pack(LAYOUT, message.arbitration_id, len(message.data), bytes(message.data)))

class Raw(udsoncan.DidCodec):
    def __init__(self, size):
        self.size = size
    def encode(self, value):
        return bytes(value)
    def decode(self, payload):
        return bytes(payload)
    def __len__(self):
        return self.size

def key(level, seed, params=None):
    v = int.from_bytes(seed, "big") ^ 0x4C6F636B
    v = ((v << 7 | v >> 25) + 0x5EED) & 0xFFFFFFFF
    return v.to_bytes(4, "big")

address = isotp.Address(isotp.AddressingMode.Normal_11bits, txid=0x7E1, rxid=0x7E9)
stack = isotp.TransportLayer(rxfn=receive, txfn=send, address=address,
                             params={"tx_padding": 0xCC, "stmin": 1, "blocksize": 3})
config = dict(udsoncan.configs.default_client_config)
config.update({"security_algo": key, "request_timeout": 10, "data_identifiers": {
    0xF190: Raw(17), 0xF195: Raw(13), 0x1002: Raw(1), 0x1003: Raw(2), 0x1004: Raw(2), 0x1005: Raw(2), 0x1001: Raw(2),
    0x100C: Raw(2), 0x100D: Raw(2), 0x1020: Raw(4)}, "extended_data_size": 3})

with Client(PythonIsoTpConnection(stack), config=config) as c:
    print("vin", c.read_data_by_identifier(0xF190).service_data.values[0xF190].decode())
    print("supported", len(c.get_supported_dtc().service_data.dtcs))
    for d in c.get_dtc_by_status_mask(0x08).service_data.dtcs:
        print("confirmed %06X status %02X" % (d.id, d.status.get_byte_as_int()))
    s = c.get_dtc_snapshot_by_dtc_number(0x073000, 1).service_data.dtcs[0].snapshots
    print("snapshot", len(s), "gear", s[0].data[0])
    try:
        c.write_data_by_identifier(0xF190, b"A" * 17)
    except NegativeResponseException as e:
        print("refused", e.response.code_name)
    c.change_session(3)
    c.unlock_security_access(1)
    c.write_data_by_identifier(0xF190, b"ABCDEFGH123456789")
    print("vin", c.read_data_by_identifier(0xF190).service_data.values[0xF190].decode())
    c.change_session(2)
    c.unlock_security_access(1)
    c.start_routine(0xFF00)  # with response pending
    data = bytes(i * 7 & 255 for i in range(3000))
    place = udsoncan.MemoryLocation(0x80100, len(data), 32, 32)
    longest = c.request_download(place).service_data.max_length - 2
    for n, at in enumerate(range(0, len(data), longest)):
        c.transfer_data(n + 1 & 255, data[at:at + longest])
    c.request_transfer_exit()
    r = c.start_routine(0x0202, struct.pack(">II", 0x80100, len(data)))
    import zlib
    print("checksum", r.service_data.routine_status_record == b"\0" + struct.pack(">I", zlib.crc32(data)))
    c.change_session(1)
    c.clear_dtc(0xFFFFFF)
    print("left", c.get_number_of_dtc_by_status_mask(0x08).service_data.dtc_count)
