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

/** Seconds that a question may take, all tries together (`apiserver/pkg/util/webhook/authentication.go`). */
const timeoutSeconds = 30;
/** Limits of one request, so that a big list does not hold up others on either side. */
const maxObjects = 500;
const maxCharacters = 1024 * 1024;

/** What a converter needs besides the definition. */
export interface ConverterContext {
  connect(webhook: ConnectedWebhook): WebhookClient;
  newUid(): string;
}

/**
 * Converts objects by the webhook of a definition (apiextensions `apiserver/conversion`). Its errors are plain ones,
 * 500, in kube-apiserver's words.
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
   * The objects in a version, in their order: copies of those that are in others, unpruned. Long lists are several
   * questions.
   *
   * @param apiVersion `<group>/<version>`.
   * @throws {StatusError} 500 when one of them cannot be converted.
   */
  async convert(objects: readonly KubeObject[], apiVersion: string): Promise<KubeObject[]> {
    const others = [...objects.entries()].filter(([, object]) => object.apiVersion !== apiVersion);
    for (const [, object] of others) this.#checkVersions(object, apiVersion);
    const converted = [...objects];
    for (const question of questionsOf(others)) {
      const answers = await this.#ask(question, apiVersion);
      for (const [i, { place }] of question.entries()) {
        const answer = answers[i];
        if (answer !== undefined) converted[place] = answer;
      }
    }
    return converted;
  }

  /** Closes its connections when the last question has been answered. */
  async close(): Promise<void> {
    await this.#client.close();
  }

  /** Closes its connections; questions fail. */
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

  async #ask(question: readonly Asked[], apiVersion: string): Promise<KubeObject[]> {
    const first = question[0]?.object;
    const failed = `conversion webhook for ${typeText(first?.apiVersion ?? '', first?.kind ?? '')}`;
    const texts = question.map(({ text }) => text);
    const uid = this.#newUid();
    const version = this.#reviewVersion;
    let answers: readonly unknown[];
    try {
      const answer = await this.#client.call(conversionReviewOf(texts, apiVersion, version, uid));
      answers = convertedObjects(readAnswer(answer, conversionReview, version), version, uid);
    } catch (error) {
      throw plainError(`${failed} failed: ${errorMessage(error)}`);
    }
    if (answers.length !== question.length) {
      throw plainError(`${failed} returned ${answers.length} objects, expected ${question.length}`);
    }
    return question.map(({ object }, i) => convertedObject(object, answers[i], apiVersion, failed));
  }
}

/** An object to convert, with its index among all of them. */
interface Asked {
  readonly place: number;
  readonly object: KubeObject;
  readonly text: string;
}

/** One request after the other; its text is made when it is sent. */
function* questionsOf(objects: readonly (readonly [number, KubeObject])[]): Generator<readonly Asked[]> {
  let question: Asked[] = [];
  let characters = 0;
  for (const [place, object] of objects) {
    const text = encodeSorted(object);
    const isFull = question.length === maxObjects || characters + text.length > maxCharacters;
    if (isFull && question.length > 0) {
      yield question;
      question = [];
      characters = 0;
    }
    question.push({ place, object, text });
    characters += text.length;
  }
  if (question.length > 0) yield question;
}

/** An object of an answer, with the metadata that it had. @throws {StatusError} 500 */
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

/** As apimachinery's UnstructuredJSONScheme reads one. @throws {StatusError} 500 */
function objectOf(answer: unknown): JsonRecord {
  if (answer === undefined || answer === null) throw plainError('unexpected end of JSON input');
  if (!isRecord(answer)) throw plainError(`json: cannot unmarshal ${JSON.stringify(answer)} into an object`);
  if (typeof answer['kind'] !== 'string' || answer['kind'] === '') {
    throw plainError(`Object 'Kind' is missing in '${JSON.stringify(answer)}'`);
  }
  return answer;
}
