/** Milliseconds without an answer to a client until a name counts as missing: it may have asked for several. */
const settledMs = 1000;
/** Names of clients at a time; beyond, the oldest is said. */
const maxNames = 1000;

/** A name that a client asked for, as it meant it. */
interface Missing {
  readonly name: string;
  readonly client: string;
  lastMs: number;
}

export interface MissingNamesOptions {
  /** Of the cluster: `cluster.local`. */
  readonly domain: string;
  /** The namespace of the Pod that has an address; undefined: none has. */
  readonly namespaceOf: (client: string) => string | undefined;
  /** Is given each name that does not exist, once, as its client meant it. */
  readonly tell: (name: string, client: string) => void;
}

/**
 * Finds the names that clients ask for in vain. A resolver asks for one name in each domain of its search list, and in both
 * families, and most of the answers are that there is none: a name is missing where no answer has it.
 */
export class MissingNames {
  readonly #options: MissingNamesOptions;
  /** The oldest first. */
  readonly #missing: Missing[] = [];

  constructor(options: MissingNamesOptions) {
    this.#options = options;
  }

  /** A client was answered. @param name without a dot at its end. @param exists whether there is such a name. */
  answered(client: string, name: string, exists: boolean, nowMs: number): void {
    const asked = name.toLowerCase();
    const meant = this.#meanings(client, asked);
    const found = this.#missing.findIndex(
      (each) => each.client === client && (meant.includes(each.name) || each.name === asked),
    );
    const known = this.#missing[found];
    if (exists) {
      if (known !== undefined) this.#missing.splice(found, 1);
    } else if (known !== undefined) known.lastMs = nowMs;
    else {
      this.#missing.push({ name: meant[0] ?? asked, client, lastMs: nowMs });
      if (this.#missing.length > maxNames) this.#say(this.#missing.shift());
    }
  }

  /** Says what no answer came for. */
  tick(nowMs: number): void {
    for (let i = 0; i < this.#missing.length;) {
      const missing = this.#missing[i];
      if (missing === undefined || nowMs - missing.lastMs < settledMs) i++;
      else this.#say(this.#missing.splice(i, 1)[0]);
    }
  }

  /** What its user may have typed, the shortest first: without a domain of the search list, and as it is. */
  #meanings(client: string, name: string): readonly string[] {
    const { domain, namespaceOf } = this.#options;
    const namespace = namespaceOf(client);
    const searched = [`svc.${domain}`, domain];
    if (namespace !== undefined) searched.unshift(`${namespace}.svc.${domain}`);
    const short = searched
      .filter((each) => name.endsWith(`.${each}`))
      .map((each) => name.slice(0, -each.length - 1));
    return [...short, name];
  }

  #say(missing: Missing | undefined): void {
    if (missing !== undefined) this.#options.tell(missing.name, missing.client);
  }
}
