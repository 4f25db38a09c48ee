import type { ExecResult } from '../../../src/host/host.ts';
import { isRecord } from '../../../src/objects/json.ts';

/** What a machine's process is asked to do. */
export type Call =
  | Program
  /** The next piece of input of the program that a request runs; undefined: there is no more. */
  | { call: 'feed'; of: number; text: string | undefined }
  /** Ends the program that a request runs. */
  | { call: 'abort'; of: number }
  | { call: 'getSysctl'; name: string }
  | { call: 'setSysctl'; name: string; value: string }
  | { call: 'listen' | 'datagram'; address: string; port: number }
  | { call: 'connect'; address: string; port: number; from: string | undefined }
  | { call: 'serve'; name: string; protocol: 'TCP' | 'UDP'; port: number }
  | Question;

export interface Program {
  readonly call: 'exec';
  readonly program: string;
  readonly args: readonly string[];
  /** `pieces`: each is asked for. */
  readonly input: { readonly text: string } | 'pieces';
  /** What it prints is told piece by piece. */
  readonly tellsOutput: boolean;
}

/** A connection or datagram to an address, and how long to wait for the answer. */
export interface Question {
  readonly call: 'ask';
  readonly protocol: 'TCP' | 'UDP';
  readonly address: string;
  readonly port: number;
  /** Milliseconds. */
  readonly timeout: number;
  readonly sourceAddress: string | undefined;
  readonly sourcePort: number | undefined;
}

export interface Request {
  readonly id: number;
  readonly request: Call;
}

export interface Reply {
  readonly id: number;
  /** There is more to come: the program of the request wants the next piece of input, or it has printed something. */
  readonly wantsInput?: true;
  readonly output?: string;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly code?: string; readonly name: string };
}

/** What a server of a machine says to a client. */
export interface Answer {
  /** Of the machine. */
  readonly name: string;
  /** The port that it listens on. */
  readonly port: number;
  /** Whom it sees as the client. */
  readonly client: string;
}

/** How asking ended: refused at once, or silence. */
export type Outcome = Answer | 'refused' | 'silence';

// Both ends are ours: what these functions do not look at is as the other end wrote it.

export function isRequest(message: unknown): message is Request {
  return isRecord(message) && typeof message['id'] === 'number' && isRecord(message['request']);
}

export function isReply(message: unknown): message is Reply {
  return isRecord(message) && typeof message['id'] === 'number';
}

export function isAnswer(value: unknown): value is Answer {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['client'] === 'string';
}

export function isOutcome(value: unknown): value is Outcome {
  return value === 'refused' || value === 'silence' || isAnswer(value);
}

export function isExecResult(value: unknown): value is ExecResult {
  return isRecord(value) && typeof value['exitCode'] === 'number' && typeof value['stdout'] === 'string';
}
