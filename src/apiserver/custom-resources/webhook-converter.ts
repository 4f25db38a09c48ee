import type { CustomResourceDefinition } from '../../objects/types/apiextensions.generated.ts';
import { isRecord, type JsonRecord } from '../../objects/json.ts';
import type { KubeObject } from '../../objects/meta.ts';
import { plainError } from '../../objects/status-errors.ts';

import { encodeSorted } from '../schema/encode.ts';
import { isReviewVersion, readAnswer, type ReviewVersion } from '../admission/webhooks/answer.ts';
import type { ConnectedWebhook, WebhookClient } from '../admission/webhooks/client.ts';
import { typeText } from '../admission/webhooks/review.ts';
import { checkSameObject, convertedMetadata } from './converted-metadata.ts';
import { conversionReview, conversionReviewOf, convertedObjects } from './conversion-review.ts';
import { errorMessage } from '../../objects/error-message.ts';

/** For one call with all its retries (`apiserver/pkg/util/webhook/authentication.go`). */
const timeoutSeconds = 30;
/** Limits of one call, so that a long list does not delay other requests, here or in the webhook. */
const maxObjects = 500;
const maxCharacters = 1024 * 1024;

/** The dependencies of a converter. */
export interface ConverterContext {
  connect(webhook: ConnectedWebhook): WebhookClient;
  newUid(): string;
}

/**
 * Converts objects by the webhook of a definition (apiextensions `apiserver/conversion`). Its errors are those of
 * kube-apiserver, with the code 500.
 */
export class WebhookConverter {
  readonly #client: WebhookClient;
  readonly #reviewVersion: ReviewVersion;
  /** `<group>/<version>` of all versions that the definition has. */
  readonly #apiVersions: ReadonlySet<string>;
  readonly #newUid: () => string;

  constructor({ spec }: CustomResourceDefinition, context: ConverterContext) {
    const { clientConfig = {}, conversionReviewVersions } = spec.conversion?.webhook ?? {};
    this.#client = context.connect({ clientConfig, timeoutSeconds });
    this.#reviewVersion = (conversionReviewVersions ?? []).find(isReviewVersion) ?? 'v1';
    this.#apiVersions = new Set((spec.versions ?? []).map(({ name }) => `${spec.group}/${name}`));
    this.#newUid = () => context.newUid();
  }

  /**
   * The objects in a version, in the same order. Those of other versions are converted, and not pruned. Long lists are
   * sent in several calls.
   *
   * @param apiVersion `<group>/<version>`.
   * @throws {StatusError} 500 when one of them cannot be converted.
   */
  async convert(objects: readonly KubeObject[], apiVersion: string): Promise<KubeObject[]> {
    const others = [...objects.entries()].filter(([, object]) => object.apiVersion !== apiVersion);
    for (const [, object] of others) this.#checkVersions(object, apiVersion);
    const converted = [...objects];
    for (const batch of batchesOf(others)) {
      const answers = await this.#call(batch, apiVersion);
      for (const [i, { index }] of batch.entries()) {
        const answer = answers[i];
        if (answer !== undefined) converted[index] = answer;
      }
    }
    return converted;
  }

  /** Closes the connections once all calls have been answered. */
  async close(): Promise<void> {
    await this.#client.close();
  }

  /** Closes the connections at once; open calls fail. */
  async destroy(): Promise<void> {
    await this.#client.destroy();
  }

  #checkVersions({ apiVersion: from = '' }: KubeObject, to: string): void {
    if (!this.#apiVersions.has(to)) {
      throw plainError(`request to convert CR to an invalid group/version: ${to}`);
    }
    if (!this.#apiVersions.has(from)) {
      throw plainError(`request to convert CR from an invalid group/version: ${from}`);
    }
  }

  async #call(batch: readonly ConversionItem[], apiVersion: string): Promise<KubeObject[]> {
    const first = batch[0]?.object;
    const failed = `conversion webhook for ${typeText(first?.apiVersion ?? '', first?.kind ?? '')}`;
    const texts = batch.map(({ text }) => text);
    const uid = this.#newUid();
    const version = this.#reviewVersion;
    let answers: readonly unknown[];
    try {
      const answer = await this.#client.call(conversionReviewOf(texts, apiVersion, version, uid));
      answers = convertedObjects(readAnswer(answer, conversionReview, version), version, uid);
    } catch (error) {
      throw plainError(`${failed} failed: ${errorMessage(error)}`);
    }
    if (answers.length !== batch.length) {
      throw plainError(`${failed} returned ${answers.length} objects, expected ${batch.length}`);
    }
    return batch.map(({ object }, i) => convertedObject(object, answers[i], apiVersion, failed));
  }
}

/** An object to convert, with its index among all of them. */
interface ConversionItem {
  readonly index: number;
  readonly object: KubeObject;
  readonly text: string;
}

/** The batches of objects, encoded one batch at a time. */
function* batchesOf(
  objects: readonly (readonly [number, KubeObject])[],
): Generator<readonly ConversionItem[]> {
  let batch: ConversionItem[] = [];
  let characters = 0;
  for (const [index, object] of objects) {
    const text = encodeSorted(object);
    const isFull = batch.length === maxObjects || characters + text.length > maxCharacters;
    if (isFull && batch.length > 0) {
      yield batch;
      batch = [];
      characters = 0;
    }
    batch.push({ index, object, text });
    characters += text.length;
  }
  if (batch.length > 0) yield batch;
}

/** A converted object with its restored metadata. @throws {StatusError} 500 */
function convertedObject(
  original: KubeObject,
  answer: unknown,
  apiVersion: string,
  failed: string,
): KubeObject {
  const converted = objectOf(answer);
  const { apiVersion: version, kind, ...rest } = converted;
  if (version !== apiVersion) {
    const received = typeof version === 'string' ? version : '';
    throw plainError(
      `${failed} returned invalid object at index 0: invalid groupVersion (expected ${apiVersion}, received ${received})`,
    );
  }
  if (kind !== original.kind) {
    const received = typeof kind === 'string' ? kind : '';
    throw plainError(
      `${failed} returned invalid object at index 0: invalid kind (expected ${original.kind ?? ''}, received ${received})`,
    );
  }
  try {
    checkSameObject(original, converted);
  } catch (error) {
    throw plainError(`${failed} returned invalid object: ${errorMessage(error)}`);
  }
  try {
    const metadata = convertedMetadata(original.metadata, converted);
    return { ...rest, apiVersion, ...(original.kind === undefined ? {} : { kind: original.kind }), metadata };
  } catch (error) {
    throw plainError(`${failed} returned invalid metadata: ${errorMessage(error)}`);
  }
}

/** The object, checked as apimachinery's UnstructuredJSONScheme does. @throws {StatusError} 500 */
function objectOf(answer: unknown): JsonRecord {
  if (answer === undefined || answer === null) throw plainError('unexpected end of JSON input');
  if (!isRecord(answer)) throw plainError(`json: cannot unmarshal ${JSON.stringify(answer)} into an object`);
  if (typeof answer['kind'] !== 'string' || answer['kind'] === '') {
    throw plainError(`Object 'Kind' is missing in '${JSON.stringify(answer)}'`);
  }
  return answer;
}
