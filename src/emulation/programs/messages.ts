/**
 * What the process of the cluster network and that of the built-in programs say to each other. Both ends are this
 * program: members that are not checked here are as the other end wrote them.
 */
import type { ContainerExit } from '../../controllers/kubelet/container-runtime.ts';
import { isRecord } from '../../objects/json.ts';
import type { DeclaredPort, PodIdentity, PodResponses, ServedContainer } from '../pod-server.ts';
import type { ProgramContainer } from '../program.ts';

/** A program to be started in the network of a Pod. */
export type WantedProgram = StandIn | ImageRun;

interface InNetwork {
  /** The Pod's network namespace, by its name for `ip netns`. */
  readonly namespace: string;
  /** The addresses on which servers listen. */
  readonly listenAt: readonly string[];
}

/** The built-in server, on these ports. */
export interface StandIn extends InNetwork, Pick<ServedContainer, 'logFormat' | 'documents'> {
  readonly kind: 'stand-in';
  readonly identity: PodIdentity;
  readonly ports: readonly DeclaredPort[];
  readonly healthy: boolean;
}

/** The program of an image, by its entrypoint. */
export interface ImageRun extends InNetwork, Pick<ProgramContainer, 'hostname' | 'hosts' | 'environment'> {
  readonly kind: 'image';
  readonly entrypoint: string;
  readonly argv: readonly string[];
}

/** What a program asks its container, and with what it is answered. */
export type Question =
  /** A Buffer. */
  | { readonly ask: 'file'; readonly path: string }
  /** A text. */
  | { readonly ask: 'resolv.conf' }
  /** An ExecResult. */
  | { readonly ask: 'exec'; readonly command: readonly string[] };

/** The failure of a call. */
export interface Failure {
  readonly message: string;
  /** The system's. */
  readonly code?: string;
}

/** To the programs. `id` is of one run of a program. */
export type ToPrograms =
  | { readonly to: 'start'; readonly id: number; readonly wanted: WantedProgram }
  | { readonly to: 'signal'; readonly id: number; readonly signal: NodeJS.Signals }
  | { readonly to: 'setHealthy'; readonly id: number; readonly healthy: boolean }
  | ({ readonly to: 'answer'; readonly id: number; readonly question: number } & Outcome);

/** From the programs. */
export type FromPrograms =
  /** With the failure of one that has not. */
  | { readonly from: 'started'; readonly id: number; readonly failure?: Failure }
  | { readonly from: 'ended'; readonly id: number; readonly exit: ContainerExit }
  | {
      readonly from: 'printed';
      readonly id: number;
      readonly stream: 'stdout' | 'stderr';
      readonly text: string;
    }
  | { readonly from: 'asked'; readonly id: number; readonly question: number; readonly what: Question }
  | { readonly from: 'responses'; readonly responses: PodResponses };

/** A result, or a failure. */
export interface Outcome {
  readonly result?: unknown;
  readonly failure?: Failure;
}

export function isToPrograms(message: unknown): message is ToPrograms {
  return isRecord(message) && typeof message['to'] === 'string';
}

export function isFromPrograms(message: unknown): message is FromPrograms {
  return isRecord(message) && typeof message['from'] === 'string';
}

/** What an error says to the other end. */
export function failureOf(error: unknown): Failure {
  const known = error instanceof Error ? error : new Error(String(error));
  return {
    message: known.message,
    ...('code' in known && typeof known.code === 'string' ? { code: known.code } : {}),
  };
}

/** The error of the other end. */
export function errorOf({ message, code }: Failure): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}
