import type { Socket as DatagramSocket } from 'node:dgram';
import type { Server, Socket } from 'node:net';

/** How a program ended, and what it printed. */
export interface ExecResult {
  /** 0 to 255; 128 and the signal's number where a signal ended it. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ExecOptions {
  /** Text for its standard input, which is empty otherwise. Pieces are asked for as the program reads. */
  readonly input?: string | Iterable<string> | AsyncIterable<string>;
  /** Called with each piece of the program's output; `stdout` is then empty. */
  readonly output?: (text: string) => void;
  /** Ends the program. */
  readonly signal?: AbortSignal;
}

export interface ConnectOptions {
  /** Gives up. */
  readonly signal?: AbortSignal;
  /** The address of the machine that the connection comes from; default: the kernel's choice. */
  readonly from?: string;
}

/**
 * The one seam between our programs and a machine: a real node, or a namespace that plays one. Node.js cannot enter a
 * network namespace by itself; with this seam one process drives several nodes, each by a Host of its own.
 *
 * No error of a socket ends the process: those that a Host makes or accepts have a listener until they are destroyed.
 *
 * The contract is in `test/contract/host.contract.ts`; every implementation runs it.
 */
export interface Host {
  /**
   * Runs a program of the machine to its end, without a shell. An exit code other than 0 is a result, not an error.
   *
   * @throws {ProgramMissingError} where there is no such program.
   * @throws the reason of `signal`, or what `input` or `output` threw, once the program has ended by it.
   */
  exec(program: string, args: readonly string[], options?: ExecOptions): Promise<ExecResult>;

  /**
   * Makes a TCP or HTTP server listen; resolves once it accepts. `server.close()` ends it.
   *
   * @param address IPv4 or IPv6; `0.0.0.0` and `::` mean every address of that family alone.
   * @param port 0 to 65535; 0: any free one, which `server.address()` returns.
   * @throws the system's error (`EADDRINUSE`, `EADDRNOTAVAIL`, `EACCES` in `code`).
   */
  listen(server: Server, address: string, port: number): Promise<void>;

  /**
   * Opens a TCP connection from the machine.
   *
   * @throws the system's error (`ECONNREFUSED`, `EHOSTUNREACH`, `EADDRNOTAVAIL` in `code`), or the reason of `signal`.
   */
  connect(address: string, port: number, options?: ConnectOptions): Promise<Socket>;

  /**
   * Opens a UDP socket, bound to the address and port as {@link listen} has them.
   *
   * @throws the system's error, as listen does.
   */
  datagram(address: string, port: number): Promise<DatagramSocket>;

  readonly sysctl: KernelParameters;
}

/** A {@link Host} of this process, whose kernel can be listened to. */
export interface NetlinkHost extends Host {
  /**
   * Opens a netlink socket (netlink(7)) that gets what the kernel says to groups, for `fs.readSync`, which throws `EAGAIN`
   * where nothing has come and `ENOBUFS` where the kernel has thrown something away. Its user closes the descriptor.
   *
   * @throws the system's error (`EPERM` without rights over the network).
   */
  netlink(groups: NetlinkGroups): Promise<number>;
}

/** What a netlink socket listens to. */
export interface NetlinkGroups {
  /** The number of its protocol: NETLINK_NETFILTER is 12. */
  readonly protocol: number;
  /** A bit for each multicast group. */
  readonly groups: number;
  /** Bytes that the kernel may keep until they are read; it gives fewer where it has a limit (net.core.rmem_max). */
  readonly receiveBytes: number;
}

/** Kernel parameters, by the names of `sysctl(8)` with slashes: `net/ipv4/ip_forward`. */
export interface KernelParameters {
  /** The value without surrounding blanks; undefined where the kernel has no such parameter. */
  get(name: string): Promise<string | undefined>;
  /** @throws the system's error: `ENOENT` for an unknown name, `EACCES` or `EROFS` where it may not be set. */
  set(name: string, value: string): Promise<void>;
}

/** A program that a {@link Host} lacks, or that may not be run there. */
export class ProgramMissingError extends Error {
  override readonly name = 'ProgramMissingError';
  readonly program: string;

  constructor(program: string) {
    super(`there is no program "${program}"`);
    this.program = program;
  }
}

/** The reason of a signal as an error. */
export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
