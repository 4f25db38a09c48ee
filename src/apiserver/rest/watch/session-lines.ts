import type { KubeObject } from '../../../objects/meta.ts';
import type { StatusError } from '../../../objects/status.ts';
import type { MediaType } from '../../http/media-types.ts';
import { encodeObject } from '../../schema/encode.ts';
import type { StorageEvent, StoredObject } from '../../storage/storage.ts';
import type { ListOptions } from '../options/list-options.ts';
import { convertOne, type Output } from '../output.ts';
import type { Selection } from '../selection.ts';
import { presented, type ServedResource } from '../served-resource.ts';
import type { ServerCore } from '../server-core.ts';
import { eventLine, type EventType, line } from './watch-lines.ts';

/** The watched resource, and the form of its events. */
export interface WatchRequest {
  readonly resource: ServedResource;
  /** "" watches all namespaces. */
  readonly namespace: string;
  readonly options: ListOptions;
  readonly selection: Selection;
  readonly output: Output;
}

/** What one watch sends for stored events: by its selection, in its form. */
export class SessionLines {
  readonly #watch: WatchRequest;
  readonly #core: Pick<ServerCore, 'now'>;
  #columnsSent = false;

  /** @param core has the clock, for the ages in tables. */
  constructor(watch: WatchRequest, core: Pick<ServerCore, 'now'>) {
    this.#watch = watch;
    this.#core = core;
  }

  /** The watch event for a stored event; undefined: none. */
  of({ type, current, previous, revision }: StorageEvent): Buffer | undefined {
    const { selection } = this.#watch;
    if (selection.everything) return this.stored(type, current);
    const now = type !== 'DELETED' && selection.matches(current.object);
    const before = previous !== undefined && selection.matches(previous.object);
    if (now) return this.stored(before ? 'MODIFIED' : 'ADDED', current);
    return before ? this.#gone(previous.object, revision) : undefined;
  }

  get #mediaType(): MediaType {
    return this.#watch.output.negotiated.mediaType;
  }

  /** An event with the stored object. */
  stored(type: EventType, stored: StoredObject): Buffer {
    const { resource, output } = this.#watch;
    if (output.negotiated.as === '') return eventLine(resource, this.#mediaType, type, stored);
    return this.#converted(type, presented(resource, stored.object));
  }

  #converted(type: EventType | 'BOOKMARK', shown: KubeObject): Buffer {
    const { resource, output } = this.#watch;
    const converted = convertOne(output, resource, shown, this.#core.now(), !this.#columnsSent);
    this.#columnsSent = true;
    return line(this.#mediaType, type, JSON.stringify(converted));
  }

  /** An object that has left the selection: its last matching state, with the revision of the event. */
  #gone(previous: KubeObject, revision: number): Buffer {
    const { resource, output } = this.#watch;
    const object = {
      ...previous,
      metadata: { ...previous.metadata, resourceVersion: String(revision) },
    };
    const shown = presented(resource, object);
    if (output.negotiated.as !== '') return this.#converted('DELETED', shown);
    return line(this.#mediaType, 'DELETED', encodeObject(resource.schema, shown));
  }

  /** A bookmark: an event without an object, with the revision that the client has reached. */
  bookmark(revision: number, annotations?: Record<string, string>): Buffer {
    const { resource, output } = this.#watch;
    const empty: KubeObject = {
      kind: resource.definition.kind,
      apiVersion: resource.apiVersion,
      metadata: {
        resourceVersion: String(revision),
        ...(annotations === undefined ? {} : { annotations }),
      },
    };
    if (output.negotiated.as !== '') return this.#converted('BOOKMARK', empty);
    return line(this.#mediaType, 'BOOKMARK', encodeObject(resource.schema, empty));
  }

  error(error: StatusError): Buffer {
    return line(this.#mediaType, 'ERROR', JSON.stringify(error.toStatus()));
  }
}
