import { CostLimitError } from '../../../cel/meter.ts';
import type { Value } from '../../../cel/values.ts';
import type { CompiledRule } from './compile-rules.ts';

/** Bytes that an evaluated message may have (`apiserver/pkg/apis/cel/config.go`). */
const maxMessage = 5 * 1024;

/** The result of a `messageExpression`. */
interface Message {
  /** Undefined when it has none, or no usable one: then the rule's `message` is used. */
  readonly text: string | undefined;
  readonly cost: number;
  /** Stops the validation of the object. */
  readonly fatal?: string;
}

/** The message of a broken rule: one line, not too long (apiextensions `schema/cel/validation.go` evalMessageExpression). */
export function evaluateMessage(
  { message, rule }: CompiledRule,
  bindings: ReadonlyMap<string, Value>,
  costLimit: number,
): Message {
  if (message === undefined) return { text: undefined, cost: 0 };
  const { value, error, burden: cost } = message.evaluate(bindings, costLimit);
  if (error instanceof CostLimitError) {
    const source = JSON.stringify(rule.messageExpression);
    const why =
      'no further validation rules will be run due to call cost exceeds limit for messageExpression';
    return { text: undefined, cost, fatal: `${why}: ${source}` };
  }
  const text = typeof value === 'string' ? value.trim() : '';
  const usable = text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= maxMessage;
  return { text: usable ? text : undefined, cost };
}
