// The worker groups of a form: they are changed, added and taken away.
import { button, element } from "../views/dom.js";
import { Fields } from "./fields.js";

const NAME = { pattern: "[a-z]([-a-z0-9]*[a-z0-9])?", maxlength: 53, title: "a-z, 0-9 and -, beginning with a letter" };

export const POD = [
  ["cpus", "CPUs", "text", "of each pod, as 4 or 500m"],
  ["memory", "Memory", "text", "as 16Gi"],
  ["gpus", "GPUs", "number"],
  ["gpu", "Kind of GPU", "text", "nvidia.com/gpu where it is empty"],
  ["image", "Image", "text"],
];

const COUNTS = [
  ["replicas", "Replicas", "number", "with Ray's autoscaler its bounds count"],
  ["min", "Least", "number"],
  ["max", "Most", "number"],
  ["hosts", "Pods of each replica", "number", "", { min: 1 }],
];

class Group {
  constructor(values, isNew, away) {
    this.name = values.name;
    this.isNew = isNew;
    const name = isNew ? [["name", "Name", "text", "", { ...NAME, required: true }]] : [];
    this.fields = new Fields(isNew ? "New group" : `Group ${values.name}`, [...name, ...COUNTS, ...POD], isNew ? {} : values);
    if (isNew) this.fields.at("name").control.value = values.name ?? "";
    const label = isNew ? "Leave this group out" : `Remove group ${values.name}`;
    this.fields.node.append(button(label, () => away(this)));
  }

  get form() {
    return { name: this.name, ...this.fields.changed };
  }
}

export class Groups {
  constructor(values = [], first = null) {
    this.removed = [];
    this.all = [];
    this.list = element("div", {});
    const add = button("Add a worker group", () => this.add({}, true).fields.at("name").control.focus());
    this.node = element("div", {}, this.list, element("p", {}, add));
    for (const each of values) this.add(each, false);
    if (first) this.add(first, true);
  }

  add(values, isNew) {
    const made = new Group(values, isNew, (group) => this.remove(group));
    this.all.push(made);
    this.list.append(made.fields.node);
    return made;
  }

  remove(group) {
    this.all = this.all.filter((each) => each !== group);
    if (!group.isNew) this.removed.push(group.name);
    group.fields.node.dispatchEvent(new Event("input", { bubbles: true }));
    group.fields.node.remove();
  }

  get changed() {
    const touched = this.all.filter((each) => each.isNew || each.fields.isTouched);
    return {
      ...(touched.length ? { groups: touched.map((each) => each.form) } : {}),
      ...(this.removed.length ? { withoutGroups: this.removed } : {}),
    };
  }

  rebase(values) {
    for (const each of values) {
      const own = this.all.find((group) => !group.isNew && group.name === each.name);
      if (own) own.fields.rebase(each);
      else if (!this.removed.includes(each.name)) this.add(each, false);
    }
    const there = values.map((each) => each.name);
    for (const group of this.all.filter((each) => !each.isNew && !there.includes(each.name))) group.fields.node.remove();
    this.all = this.all.filter((each) => each.isNew || there.includes(each.name));
    this.removed = this.removed.filter((each) => there.includes(each));
  }
}
