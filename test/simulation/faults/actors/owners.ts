import type { Clients } from '../../../../src/client/resource-client.ts';
import { StatusError } from '../../../../src/objects/status.ts';
import type { KubeObject, OwnerReference } from '../../../../src/objects/meta.ts';
import type { Choices } from '../random.ts';
import { configMaps } from '../resources.ts';
import { attempt, type Deed, namespace } from './actor.ts';

/** What the writer of an object should know of it. */
interface Owned {
  readonly name: string;
  readonly uid: string;
  /** The uids of its owners. */
  owners: readonly string[];
  isDeleted: boolean;
}

/**
 * Users of owner references. What has to be there in the end follows from what they did, whatever the collector does:
 * an object lives until it is deleted, or until it had owners and all of them are gone.
 */
export class Owners {
  readonly deeds: readonly Deed[];
  readonly #choices: Choices;
  readonly #collects: boolean;
  readonly #objects: Owned[] = [];
  /** Owners whose dependents the collector has known since it began: only those are certainly orphaned. */
  readonly #old: Owned[] = [];
  #count = 0;

  constructor(choices: Choices, collects: boolean) {
    this.#choices = choices;
    this.#collects = collects;
    const often = collects ? 1 : 0;
    this.deeds = [
      { weight: 0.2 * often, do: (clients) => this.#createDependent(clients) },
      { weight: 0.1 * often, do: (clients) => this.#createOwner(clients) },
      { weight: 0.12 * often, do: (clients) => this.#delete(clients) },
      { weight: 0.04 * often, do: (clients) => this.#orphan(clients) },
      { weight: 0.05 * often, do: (clients) => this.#release(clients) },
      { weight: 0.05 * often, do: (clients) => this.#replace(clients) },
    ];
  }

  async begin(clients: Clients): Promise<void> {
    if (!this.#collects) return;
    for (let i = 0; i < 2; i++) {
      const owner = await this.#make(clients, []);
      this.#old.push(owner);
      for (let n = 0; n < 2; n++) await this.#make(clients, [owner]);
    }
    // One that went before it was collected: its successor of the same name is not the owner of what it left.
    const gone = await this.#make(clients, []);
    await this.#make(clients, [gone]);
    await clients.for(configMaps).delete(namespace, gone.name);
    gone.isDeleted = true;
    await this.#make(clients, [], gone.name);
  }

  async findings(clients: Clients): Promise<string[]> {
    const { items } = await clients.for(configMaps).list({ namespace });
    const present = new Map(items.map((object) => [object.metadata.uid, object]));
    return this.#objects.flatMap((object) => {
      const found = present.get(object.uid);
      const lives = this.#lives(object);
      if (found === undefined) return lives ? [`${object.name}: was collected, and is needed`] : [];
      if (!lives) return [`${object.name}: is not collected`];
      return found.metadata.deletionTimestamp === undefined ? [] : [`${object.name}: never went`];
    });
  }

  #lives(object: Owned): boolean {
    if (object.isDeleted) return false;
    if (object.owners.length === 0) return true;
    return this.#objects.some((owner) => object.owners.includes(owner.uid) && this.#lives(owner));
  }

  async #createOwner(clients: Clients): Promise<void> {
    await this.#make(clients, []);
  }

  async #createDependent(clients: Clients): Promise<void> {
    const owners = this.#objects.filter((object) => this.#lives(object) && !this.#old.includes(object));
    if (owners.length === 0) return;
    const chosen = new Set([this.#choices.pick(owners), this.#choices.pick(owners)]);
    await this.#make(clients, [...chosen]);
  }

  async #make(clients: Clients, owners: readonly Owned[], name = `o${++this.#count}`): Promise<Owned> {
    const ownerReferences = owners.map((owner): OwnerReference => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: owner.name,
      uid: owner.uid,
      blockOwnerDeletion: this.#choices.chance(0.7),
    }));
    const { metadata } = await clients
      .for(configMaps)
      .create({ metadata: { namespace, name, ownerReferences } });
    const made = { name, uid: metadata.uid ?? '', owners: owners.map(({ uid }) => uid), isDeleted: false };
    this.#objects.push(made);
    return made;
  }

  async #delete(clients: Clients): Promise<void> {
    const object = this.#choose((one) => !this.#old.includes(one));
    if (object === undefined) return;
    const propagationPolicy = this.#choices.pick(['Background', 'Foreground'] as const);
    // It may be gone with its owner.
    await attempt(clients.for(configMaps).delete(namespace, object.name, { propagationPolicy }));
    object.isDeleted = true;
  }

  async #orphan(clients: Clients): Promise<void> {
    const [object] = this.#old.splice(0, 1);
    if (object === undefined) return;
    await clients.for(configMaps).delete(namespace, object.name, { propagationPolicy: 'Orphan' });
    for (const other of this.#objects) other.owners = other.owners.filter((uid) => uid !== object.uid);
    object.isDeleted = true;
  }

  /** A user sets an object free, if it is not collected by now. */
  async #release(clients: Clients): Promise<void> {
    const object = this.#choose(({ owners }) => owners.length > 0);
    if (object === undefined) return;
    const metadata = { uid: object.uid, ownerReferences: null };
    try {
      const free: KubeObject = await clients.for(configMaps).mergePatch(namespace, object.name, { metadata });
      if (free.metadata.deletionTimestamp === undefined) object.owners = [];
    } catch (error) {
      if (!(error instanceof StatusError && [404, 409].includes(error.code))) throw error;
    }
  }

  /** Another object of the same name: it owns nothing of what the one before owned. */
  async #replace(clients: Clients): Promise<void> {
    const object = this.#choose((one) => !this.#old.includes(one));
    if (object === undefined) return;
    await attempt(clients.for(configMaps).delete(namespace, object.name));
    object.isDeleted = true;
    await attempt(this.#make(clients, [], object.name));
  }

  #choose(suits: (object: Owned) => boolean): Owned | undefined {
    const all = this.#objects.filter((object) => this.#lives(object) && suits(object));
    return all.length === 0 ? undefined : this.#choices.pick(all);
  }
}
