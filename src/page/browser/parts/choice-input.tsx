import { useId, useState } from 'preact/hooks';
import { Text } from './words.tsx';

export interface Choice {
  readonly value: string;
  /** What it is. */
  readonly note: string;
}

/** As many choices are offered. */
const mostChoices = 50;

/** A field to type into, with choices that what is typed finds: any text may be typed (ARIA's combobox). */
export function ChoiceInput(props: {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly choices: readonly Choice[];
  readonly onInput: (text: string) => void;
}) {
  const { label, value, choices, onInput } = props;
  const id = useId();
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const isWhole = choices.some((choice) => choice.value === value);
  const words = isWhole ? [] : value.toLowerCase().split(/\s+/);
  const found = choices.filter((choice) => words.every((word) => choice.value.toLowerCase().includes(word)));
  const offered = found.slice(0, mostChoices);
  const choose = (text: string): void => {
    onInput(text);
    setOpen(false);
    setActive(-1);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setOpen(true);
      setActive(Math.max(-1, Math.min(offered.length - 1, active + step)));
    } else if (event.key === 'Enter' && isOpen && offered[active] !== undefined) {
      event.preventDefault();
      choose(offered[active].value);
    } else if (event.key === 'Escape' && isOpen) {
      event.stopPropagation();
      setOpen(false);
    }
  };
  return (
    <div class="field choice">
      <label for={id}>{label}</label>
      <input
        id={id}
        role="combobox"
        aria-expanded={isOpen}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && active >= 0 ? `${id}-${active}` : undefined}
        autocomplete="off"
        spellcheck={false}
        placeholder={props.placeholder}
        value={value}
        onInput={({ currentTarget }) => {
          onInput(currentTarget.value);
          setOpen(true);
          setActive(-1);
        }}
        onFocus={({ currentTarget }) => currentTarget.select()}
        onClick={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <ul id={`${id}-list`} role="listbox" aria-label={label} hidden={!isOpen || offered.length === 0}>
        {isOpen &&
          offered.map((choice, index) => (
            <li
              key={choice.value}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === active}
              // Before the field loses the focus, which closes the list.
              onPointerDown={(event) => {
                event.preventDefault();
                choose(choice.value);
              }}
            >
              <Text>{choice.value}</Text> <span class="muted">{choice.note}</span>
            </li>
          ))}
        {isOpen && found.length > mostChoices && (
          <li class="muted more" role="option" aria-disabled="true" aria-selected="false">
            {found.length - mostChoices} more: type to find them
          </li>
        )}
      </ul>
    </div>
  );
}
