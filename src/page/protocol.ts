import type { EndpointSource } from '../client/transport.ts';
import { isRecord } from '../objects/json.ts';
import type { PacketPlace, TriedConnection } from '../view/trace-connection.ts';
import type { PageSettings } from './page.ts';

/** What passes between the process that listens and the one that answers. Both are of one version. */

export type ToPage =
  | { readonly to: 'open'; readonly source: EndpointSource; readonly settings: PageSettings }
  /** With the connection itself. */
  | { readonly to: 'connection' }
  | { readonly to: 'checked'; readonly id: number; readonly tried: TriedConnection }
  | { readonly to: 'checkFailed'; readonly id: number; readonly message: string };

export type FromPage =
  | {
      readonly from: 'check';
      readonly id: number;
      readonly place: PacketPlace;
      readonly address: string;
      readonly port: number;
    }
  /** Nobody has been connected for long. @param taken connections that have come so far. */
  | { readonly from: 'idle'; readonly taken: number };

export function isToPage(message: unknown): message is ToPage {
  return isRecord(message) && typeof message['to'] === 'string';
}

export function isFromPage(message: unknown): message is FromPage {
  return isRecord(message) && typeof message['from'] === 'string';
}
